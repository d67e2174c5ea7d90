"""Rendering: turns a result into a rich renderable, matplotlib figure or bytes; computes nothing.

`terminal` holds what a console shows, `figure` what a picture shows (the only place that imports
matplotlib), `files` what is written for other programs.
"""
