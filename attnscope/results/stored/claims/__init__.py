"""How claims about heads are written and read again."""
