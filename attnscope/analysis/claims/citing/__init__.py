"""Which passage an answer came from."""
