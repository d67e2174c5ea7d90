"""From a name and a text to a certified result: everything that can be asked of a model, for any front end.

    open_reading -> Reading -> read_head, read_overview, map_head, predict, compare_words, verify...

Knows no terminal and no picture. Who wants to follow what happens gives a `Listener`.
"""
