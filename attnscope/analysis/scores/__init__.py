"""Scores heads by measures, supplies what these need, and makes the runs some of them need."""
