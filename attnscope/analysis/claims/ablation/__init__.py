"""What a model's answer becomes without some of its heads: experiments, and what they are held against."""
