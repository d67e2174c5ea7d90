"""Proof by cause: the model runs again with other tokens or other answers, and what changes tells.

standing   whether position i of a layer stands for token i: exchange tokens, and look at what changes
reaching   whether what an attention answers acts, and on which rows: give other answers

Standings are asked in runs in which every attention answers zeros (`exchange`, `standing`).
Reach is asked in runs with other answers,

    clean run -> the answer of every row another -> each by a factor of its own -> of half of the rows

as *changed or not changed*, never as a gradient, so that code in NumPy, whole numbers or in place
answers too. Every attention module's result, or its block's, is put back to the clean one, so that one run
tries all layers (`rerun`, `answers`, `outputs`, `blocks`, `onward`; `rows` tells rows apart).
"""
