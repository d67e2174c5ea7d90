"""Arrays as a user gives them to `attnscope sdpa`: typed, or in files."""
