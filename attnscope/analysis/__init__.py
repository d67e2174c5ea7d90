"""Capture in, result out: what can be said about heads. Never prints, never plots."""
