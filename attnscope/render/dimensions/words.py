"""What is said of the dimensions of a pair, on a terminal and below a picture."""

import numpy as np

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, short, signed_texts, weight_text
from attnscope.results import Dimensions

BESIDE = (
    "others: the same product with the query's other keys, mean over them; what all keys share "
    "moves no weight"
)


def pair_name(result: Dimensions) -> str:
    """`5 [MASK] → 9 opened`."""
    head = result.head
    return f"{settled(head.query_tokens.named(result.query))} → {settled(head.key_tokens.named(result.key))}"


def sum_words(result: Dimensions) -> str:
    """`q·k 12.34, the sum of 32 products; 2.18 enters the softmax; weight .582`."""
    head, place = result.head, (result.query, result.key)
    told = f"q·k {number(float(head.scores[place]))}, the sum of {counted(len(result.products), 'product')}"
    entering = number(float(head.scaled[place]))
    return f"{told}; {entering} enters the softmax; weight {weight_text(float(head.weights[place]), 3)}"


def share_words(result: Dimensions) -> str:
    """How far above the other keys this one is, and how many dimensions make that."""
    if not result.others:
        return "this query may look at no other key"
    above = result.products - result.beside
    total = float(above.sum())
    side = "below" if total < 0 else "above"
    told = f"{side} the mean of the {counted(len(result.others), 'other key')} by {number(abs(total))}"
    ordered = np.cumsum(-np.sort(-above * np.sign(total or 1.0)))
    needed = int((ordered < abs(total) / 2).sum()) + 1
    return f"{told}, half of which {counted(needed, 'dimension')} can make"


def number(value: float) -> str:
    return str(signed_texts(np.array([value]), 2)[0])


def wave_text(wavelength: float) -> str:
    """Tokens of one turn: `6.3`, `198`, `6.3e4`, and for a pair that stands still `never`."""
    return "never" if not np.isfinite(wavelength) else short(wavelength)
