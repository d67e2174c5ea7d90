"""What only terminals need: colours for every depth and background, matrices as blocks."""
