"""Heads in numbers: measures of dense weights, what else these need, and runs made for a measure alone."""
