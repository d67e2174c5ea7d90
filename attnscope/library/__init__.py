"""The Python library: load a model, read a text, and ask questions, for notebooks and scripts.

    import attnscope as at

    reading = at.load("bert-base-uncased").read("I was watching the [MASK] when it opened.")
    head = reading.head(3, 11)

What is asked is asked of the same session as by the command line, under the same names, with the same
one-line errors; results are those of `attnscope.results`. Notices go to the logger `attnscope`.
"""
