"""Every head as a thumbnail of its weights."""
