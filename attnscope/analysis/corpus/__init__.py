"""A corpus in numbers: measures of whole batches, and totals that are merged part by part."""
