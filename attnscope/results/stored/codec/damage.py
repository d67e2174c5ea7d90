"""What is wrong with a file that is being read; `attnscope.results.stored.load` makes one line of it."""


class Damaged(Exception):
    """A file that does not hold what its schema says; the message says what, and where in it."""


class Missing(Damaged):
    """A key or an array that is not there."""
