"""One query and one key, dimension by dimension."""
