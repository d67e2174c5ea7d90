"""Which model is meant, where its files are, and what they say of themselves before any weight is read."""
