"""What can be asked of a reading, one function for each thing."""
