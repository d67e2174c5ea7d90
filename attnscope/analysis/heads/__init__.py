"""One head in full, its score terms, its t-SNE map; overviews of many heads; weights by words."""
