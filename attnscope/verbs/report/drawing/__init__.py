"""Draws a report as one page or as several slides."""
