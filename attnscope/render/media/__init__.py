"""Attention over a picture or a sound."""
