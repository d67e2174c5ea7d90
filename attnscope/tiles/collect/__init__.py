"""What is made of tiles as they pass: a collector sees every tile once, block of rows by block."""
