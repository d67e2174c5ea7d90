"""One head: matrix, strongest keys, bars and heatmap."""
