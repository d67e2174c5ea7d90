"""Where a model's attention is, found in its modules and its code, not in a list of architectures."""
