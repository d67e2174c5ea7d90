"""Which heads do it: every head by one number, beside the same number of control texts."""
