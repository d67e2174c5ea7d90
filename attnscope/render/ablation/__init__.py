"""What a model's answer becomes without some of its heads."""
