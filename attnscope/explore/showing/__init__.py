"""What every pane shows: the answers that are known, in the drawings of `drawing` and of `render`."""
