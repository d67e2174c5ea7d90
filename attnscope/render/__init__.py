"""Rendering: turns a result into a rich renderable, matplotlib figure or bytes; computes nothing.

`terminal` renders for consoles, `figure` as pictures (the only importer of matplotlib), `files` for other
programs.
"""
