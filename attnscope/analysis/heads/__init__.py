"""Heads of one input: one in full, its scores taken apart, its map; many at a glance; weights by words."""
