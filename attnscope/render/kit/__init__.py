"""What every rendering is made of: numbers, labels, colours, cells, pages, and the words that all share."""
