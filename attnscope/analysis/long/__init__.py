"""Heads of a long text, from calls that hold nothing of queries by keys."""
