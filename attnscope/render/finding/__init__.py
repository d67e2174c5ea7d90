"""Heads ranked by one number, each beside its controls."""
