"""The commands: each says what it asks of a reading."""
