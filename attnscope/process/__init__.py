"""The running process: how it starts and ends, its memory and time, its own files."""
