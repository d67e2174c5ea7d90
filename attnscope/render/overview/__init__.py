"""Several heads at a glance."""
