"""Attention over a long text, tile by tile: never all queries by all keys at once.

    rules     where a query may look, kept as a rule and asked for one block at a time
    call      what one layer was given and returned, without anything of queries by keys
    tiling    which blocks hold anything at all
    softmax   first pass: what every row is divided by, and its output (Milakov and Gimelshein 2018)
    stream    second pass: tiles of true weights
    collect/  what is made of these: measures, strongest links and keys, blocks of the heatmap
    side_by_side  heads at the same time
    certify   a sample of rows in float64, and the kernel's output for all rows

The arithmetic runs where the tensors are and in the dtype that it is given; sums over tiles are in float64.
Nothing here knows a model.
"""
