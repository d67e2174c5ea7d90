"""An emulated accelerator, and every kind of question asked on it: see `backend` and `questions`."""
