"""From one token back to the input through all layers, and how far that can be trusted."""
