"""A result's content as data: blocks of numbers and words, which every medium draws in its own way."""
