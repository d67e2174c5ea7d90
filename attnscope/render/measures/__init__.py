"""What measures there are."""
