"""From one token back to the input, beside what replacing tokens does."""
