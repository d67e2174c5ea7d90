"""Measures that are not taken of the text that is read."""
