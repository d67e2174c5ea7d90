"""A corpus in numbers: measures of whole batches, and totals that are merged chunk by chunk."""
