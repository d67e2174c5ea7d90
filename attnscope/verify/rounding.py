"""What rounding may come to, by the type that the work was done in: for who holds one sum against another.

The same sum, made by another kernel, in a batch of another size, on another processor or with another number
of threads, is added in another order, and comes out with other last bits. Equal bits are therefore asked only
where the same operation is done on the same shapes, or where numbers are moved and nothing is computed.
Everything else has one of these tolerances (Higham 2002, chapter 3).
"""


def adding(terms: int, sums: float) -> float:
    """How far a sum of so many numbers may be off before it is stored, over the sum of their sizes.

    `sums` is the machine epsilon of the type in which it is added up, mostly float32.
    """
    return terms * sums / 2


def apart(terms: int, epsilon: float, sums: float) -> float:
    """How far two sums of the same weighted values may lie apart, relative to the largest value.

    Weights of one query sum to 1 at most. Each sum is added (`adding`) and stored in a type of machine
    epsilon `epsilon`, its weights were stored before, and one more rounding is for whoever writes one down.
    """
    return 2 * (epsilon + adding(terms, min(epsilon, sums)))
