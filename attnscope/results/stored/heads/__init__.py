"""Stored forms of what is shown of heads: one, all, its map, the parts of its scores."""
