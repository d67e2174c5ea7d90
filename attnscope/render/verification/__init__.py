"""Every head of a model held against the model itself."""
