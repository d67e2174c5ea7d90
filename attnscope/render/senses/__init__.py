"""One word in many texts."""
