"""Attention over long texts in tiles, without the dense query-key matrix.

    tiling      what one layer was given and returned, without anything of queries by keys; where a query may
                look is a rule, asked for one block at a time, and tells which blocks hold anything at all
    softmax     first pass: what every row is divided by, and its output (Milakov and Gimelshein 2018);
                a sample of rows in float64, and the kernel's output for all rows
    stream      second pass: tiles of true weights
    collectors  the tiles of a head shown to all that collect from them, several heads at the same time: the
                strongest links and keys, the blocks of a heatmap, measures

Arithmetic runs on the tensors' device and in the given dtype; sums over tiles are in float64. Nothing here
depends on a model.
"""
