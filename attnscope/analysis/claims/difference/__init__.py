"""Two runs held against each other, and a stored run against a new one."""
