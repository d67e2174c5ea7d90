"""Blocks and sheets drawn by matplotlib, on a page of their own or on any Axes."""
