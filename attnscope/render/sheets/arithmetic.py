"""The numbers of a worked example as text: as many decimals as they need, at most as many as wanted.

They keep the zero before the point, as in a product that is written out: `0.8·0.9`.
"""

import numpy as np
from jaxtyping import Float, Shaped

from attnscope.render.kit.numbers import MINUS, in_words, largest_magnitude
from attnscope.results.worked import Cell, Step

MOST_TERMS = 6
_LARGE, _WHOLE = 1e6, 1e12


def texts(
    values: Float[np.ndarray, "..."], decimals: int, rows: int | None = None
) -> Shaped[np.ndarray, "..."]:
    """The values of the first `rows`, or all, as an object array of texts, with as many decimals as all need.

    Numbers that need fewer than `decimals` get fewer. Beyond a million, and where all are very small, an
    exponent says the same as briefly as it can: `1e8`, `−1e9`; a whole number that this would round is
    written out.
    """
    large = np.abs(values) >= _LARGE
    ordinary = values[~large]
    if 0 < largest_magnitude(ordinary) < 10.0 ** -max(decimals - 1, 2):
        return in_words(
            lambda value: _unlimited(value) or _minus(_with_exponent(value, decimals)), values[:rows]
        )
    places = next((p for p in range(decimals) if _exact(ordinary, p)), decimals)

    def word(value: float) -> str:
        if abs(value) >= _LARGE:
            return _minus(_with_exponent(value, decimals))
        return _minus(f"{value:.{places}f}")

    return in_words(lambda value: _unlimited(value) or word(value), values[:rows])


def _exact(values: Float[np.ndarray, "..."], places: int) -> bool:
    """Whether `places` decimals say all that there is, up to the noise of float64."""
    finite = values[np.isfinite(values)]
    return bool(np.allclose(finite, np.round(finite, places), rtol=0, atol=1e-11))


def _with_exponent(value: float, decimals: int) -> str:
    text = f"{value:.{max(decimals - 1, 1)}e}"
    if value == round(value) != float(text) and abs(value) < _WHOLE:
        return f"{value:.0f}"
    mantissa, exponent = text.split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if value else "0"


def _unlimited(value: float) -> str:
    return "" if np.isfinite(value) else "none" if np.isnan(value) else "−∞"


def _minus(text: str) -> str:
    return (MINUS if text.strip("-0.") else "") + text[1:] if text.startswith("-") else text


def shape_words(step: Step) -> str:
    """`3 x d_k=2`, with the words of both axes where it is about pairs: `1 x 3 (queries x keys)`."""
    rows, columns = step.matrix.rows, step.matrix.columns
    return step.matrix.shape + (f" ({rows.plural} x {columns.plural})" if columns.word == "key" else "")


def spelled_out(step: Step, decimals: int) -> str:
    """`fruit, apple: 0.8·0.9 + 0.2·0.1 + 0.1·0.2 = 0.76`; of many terms the first two and their number."""
    cell = step.cell
    if cell is None:
        return ""
    rows, columns = step.matrix.rows.names, step.matrix.columns.names
    result = _one(float(step.matrix.values[cell.row, cell.column]), decimals)
    place = ", ".join(name for name in (rows[cell.row], columns[cell.column]) if name)
    return f"{place}: {_terms(cell, decimals)} = {result}"


def _terms(cell: Cell, decimals: int) -> str:
    if cell.operation == "quotient":
        return " / ".join(_one(number, decimals) for number in cell.terms[0])
    if cell.operation == "softmax":
        powers = [f"e^{_one(logit, decimals)}" for (logit,) in cell.terms]
        return f"{powers[0]} / ({_sum(powers)})"
    word = "{}·tanh({})" if cell.operation == "tanh" else "{}·{}"
    return _sum([_product(word, term, decimals) for term in cell.terms])


def _product(word: str, term: tuple[float, ...], decimals: int) -> str:
    numbers = [_one(number, decimals) for number in term]
    if len(numbers) == 1:
        return numbers[0]
    bracketed = [numbers[0]] + [
        f"({n})" if n.startswith(MINUS) and "(" not in word else n for n in numbers[1:]
    ]
    return word.format(*bracketed)


def _sum(terms: list[str]) -> str:
    if len(terms) > MOST_TERMS:
        terms = [*terms[:2], f"… ({len(terms)} terms)"]
    return " + ".join(terms).replace(f" + {MINUS}", f" {MINUS} ")


def _one(value: float, decimals: int) -> str:
    text: str = texts(np.array([value]), decimals)[0]
    return text
