"""What measures need beside weights, gathered of the heads that are measured."""
