"""What a model predicts."""
