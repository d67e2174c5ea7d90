"""Draws blocks and sheets by matplotlib, on a page of their own or on any Axes."""
