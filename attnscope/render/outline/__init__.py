"""A model from outside."""
