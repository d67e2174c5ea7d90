"""What the trained models can do, measured on what they were not trained on, beside rules that only count."""
