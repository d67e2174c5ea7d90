"""The running program: how it starts and ends, where its time goes, where it keeps files of its own."""
