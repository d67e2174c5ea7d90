"""The scores of one head taken apart."""
