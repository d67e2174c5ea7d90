"""What every result is made of: where it came from, how it is presented, which of its tokens are special."""
