"""Parts that every rendering shares: numbers, labels, colours, cells, pages and words."""
