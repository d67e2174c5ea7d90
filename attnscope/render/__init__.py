"""Result in, rich renderable, matplotlib figure or bytes out; nothing here computes or prints.

`terminal` holds what a console shows, `figure` what a picture shows (the only place that imports
matplotlib), `files` what is written for other programs.
"""
