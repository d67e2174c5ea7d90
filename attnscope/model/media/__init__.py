"""A picture or a sound file in, the model's inputs and a name for each of its positions out."""
