"""Sessions: open a model, read inputs, ask questions, for any front end.

    open_chosen -> Reading, Chosen -> OpenedHeads, map_head, predict, compare_readings, verify_reading...

Nothing here knows a terminal or a picture. A `Listener` gets the messages.
"""
