"""Proof by cause: run the model again with other tokens or other attention outputs, and see what changes.

standing   whether position i of a layer stands for token i: exchange tokens, see which positions change
reaching   whether an attention's output has an effect, and on which rows: replace outputs

Standings are tested in runs in which every attention outputs zeros (`rows`, `standing`).
Reach is tested in runs with other outputs,

    clean run -> every row's output replaced -> each scaled by its own factor -> half of the rows replaced

as *changed or not changed*, never as a gradient, so that code in NumPy, whole numbers or in place can be
tested too. Every attention module's result, or its block's, is put back to the clean one, so that one run
tests all layers (`rerun`, `answers`, `outputs`, `blocks`, `onward`; `rows` tells rows apart).
"""
