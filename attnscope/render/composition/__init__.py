"""Which heads read what others write."""
