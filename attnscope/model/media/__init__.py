"""From a picture or a sound file to the model's inputs and a name for each of its positions."""
