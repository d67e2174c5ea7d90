"""A head over a picture or a sound."""
