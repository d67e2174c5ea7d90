"""One head on a long text: its blocks, or a window of it pair by pair."""
