"""Questions whose answers are claims about heads: each asks for its control too."""
