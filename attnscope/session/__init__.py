"""From a name and a text to a certified result: everything that can be asked of a model, for any front end.

    open_chosen -> Reading, Chosen -> OpenedHeads, map_head, predict, compare_readings, verify_reading...

Knows no terminal and no picture. Who wants to follow what happens gives a `Listener`.
"""
