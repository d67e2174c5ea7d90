"""Steps of arithmetic as a block: the text of each cell, and the formula worked out."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from attnscope.render.kit.numbers import MINUS, in_words, largest_magnitude
from attnscope.render.sheet.blocks import Drawing
from attnscope.results.steps import Step

_MOST_TERMS = 6  # of a sum that is written out
_LARGE, _WHOLE = 1e6, 1e12


@dataclass(frozen=True, eq=False)
class Steps(Drawing):
    """Steps of a worked example; a number has at most `decimals` decimals."""

    title: str
    steps: tuple[Step, ...]
    decimals: int
    says: str = ""


def texts(
    values: Float[np.ndarray, "..."], decimals: int, rows: int | None = None
) -> Shaped[np.ndarray, "..."]:
    """Texts of the values of the first `rows`, or all, with as many decimals as they need together.

    That is at most `decimals`. Beyond a million, and where all are very small, they get a short exponent:
    `1e8`, `−1e9`; a whole number that this would round is written out.
    """
    ordinary = values[np.isfinite(values) & (np.abs(values) < _LARGE)]
    small = 0 < largest_magnitude(ordinary) < 10.0 ** -max(decimals - 1, 2)
    exact = (  # up to the noise of float64
        places
        for places in range(decimals)
        if np.allclose(ordinary, np.round(ordinary, places), rtol=0, atol=1e-11)
    )
    places = next(exact, decimals)

    def word(value: float) -> str:
        if not np.isfinite(value):
            return "none" if np.isnan(value) else "−∞"
        plain = not small and abs(value) < _LARGE
        text = f"{value:.{places}f}" if plain else _with_exponent(value, decimals)
        return (MINUS if text.strip("-0.") else "") + text[1:] if text.startswith("-") else text

    return in_words(word, values[:rows])


def _with_exponent(value: float, decimals: int) -> str:
    text = f"{value:.{max(decimals - 1, 1)}e}"
    if value == round(value) != float(text) and abs(value) < _WHOLE:
        return f"{value:.0f}"
    mantissa, exponent = text.split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if value else "0"


def shape_words(step: Step) -> str:
    """`3 x d_k=2`; for pairs with the words of both axes: `1 x 3 (queries x keys)`."""
    rows, columns = step.matrix.rows, step.matrix.columns
    return step.matrix.shape + (f" ({rows.plural} x {columns.plural})" if columns.word == "key" else "")


def spelled_out(step: Step, decimals: int) -> str:
    """`fruit, apple: 0.8·0.9 + 0.2·0.1 + 0.1·0.2 = 0.76`; long sums are shortened."""
    if (cell := step.cell) is None:
        return ""

    def one(value: float) -> str:
        return str(texts(np.array([value]), decimals)[0])

    def product(first: float, *factor: float) -> str:
        second = "".join(map(one, factor))
        if cell.operation == "tanh":
            second = f"tanh({second})"
        elif second.startswith(MINUS):
            second = f"({second})"
        return "·".join(filter(None, (one(first), second)))

    if cell.operation == "quotient":
        made = " / ".join(map(one, cell.terms[0]))
    elif cell.operation == "softmax":
        powers = [f"e^{one(logit)}" for (logit,) in cell.terms]
        made = f"{powers[0]} / ({_sum(powers)})"
    else:
        made = _sum([product(*term) for term in cell.terms])
    row, column = step.matrix.rows.names[cell.row], step.matrix.columns.names[cell.column]
    result = one(float(step.matrix.values[cell.row, cell.column]))
    return f"{', '.join(filter(None, (row, column)))}: {made} = {result}"


def _sum(terms: list[str]) -> str:
    if len(terms) > _MOST_TERMS:
        terms = [*terms[:2], f"… ({len(terms)} terms)"]
    return " + ".join(terms).replace(f" + {MINUS}", f" {MINUS} ")
