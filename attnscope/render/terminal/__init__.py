"""Rendering for terminals: colours for every depth and background, matrices in characters."""
