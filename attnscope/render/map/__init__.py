"""Queries and keys of one head in one plane, beside how far that can be trusted."""
