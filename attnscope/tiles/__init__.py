"""Attention over a long text, tile by tile: never all queries by all keys at once.

    call        what one layer was given and returned, without anything of queries by keys; where a query may
                look is a rule, asked for one block at a time
    tiling      which blocks hold anything at all
    softmax     first pass: what every row is divided by, and its output (Milakov and Gimelshein 2018)
    stream      second pass: tiles of true weights
    collect     the tiles of a head shown to all that collect from them; several heads at the same time
    measured    collectors of measures
    collectors  collectors of the strongest links and keys, and of the blocks of a heatmap
    certify     a sample of rows in float64, and the kernel's output for all rows

The arithmetic runs where the tensors are and in the dtype that it is given; sums over tiles are in float64.
Nothing here knows a model.
"""
