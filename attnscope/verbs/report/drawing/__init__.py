"""One query of one head on a page."""
