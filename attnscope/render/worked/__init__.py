"""Worked examples on a screen, on a page and in files: NumPy and names in, nothing computed."""
