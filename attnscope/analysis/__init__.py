"""Turns captured attention into results about heads. Never prints, never plots."""
