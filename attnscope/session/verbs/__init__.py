"""How each verb is asked: a module for each, whose docstring is what its help says, and its `FORMS`.

Nothing here loads more than the standard library: what answers a question is named by its place.
"""
