"""Sentences that are made in English and French at once, so that it is known which word stands for which."""
