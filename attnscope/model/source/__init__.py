"""Sources of models: which one a name means, where its files are, what they tell without weights."""
