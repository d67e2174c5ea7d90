"""Measures each input part's effect on an answer: by replacing it, and by gradients."""
