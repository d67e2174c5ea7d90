"""Number formats for readers: one rule for terminal, picture, page and notebook.

* Nothing stands before the point of a number below one, `.28`; thousands have separators, `12,345`; from a
  million on and below a thousandth digits are few and have an exponent, `3.1e-8`.
* A minus is `−`, as wide as a plus; the one of an exponent is as programs write it. A change has its sign,
  `+.06`; what is given either way has as many decimals as the number it belongs to, `+.064 ±.003`.
* A number that stands alone is never rounded to nothing: it gets the digit that tells it from zero, `.003`,
  and a weight is `<.01` then. `0` is zero.
* Only the cells of a matrix or a grid, and a column that stands beside its noise, have the same decimals
  throughout, so that they can be compared at a glance: there `.00` is less than half of the last digit.
* A percentage keeps its zero, `0.4 %`, which is too easily read as 4 % without; one next to nothing is
  `<0.1 %` or `above −0.1 %`. A probability in a sentence is one, `8.3 %`, and a weight never is: so nobody
  takes one for the other.
* `-` is where there is no number; `∞` and `−∞` have no end.

Files for programs have all digits, a zero before the point and an ASCII minus (`exact`). A worked example
keeps the zero too (`sheets.worked`), for `0.8·0.9` is easier to read than `.8·.9`.
"""

import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Shaped

from attnscope.printable import printable

NONE, MINUS = "-", "−"
_LEAST, _MOST = 1e-3, 1e6  # sizes that are written without an exponent
_RARE = 9.5e-4  # a probability below this is written as 1 in N
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")
_SCALES = ("", " thousand", " million", " billion", " trillion")
_ROUNDING = 1e-5  # a sum of weights that is so near to 1 is all of it


def number(value: float, decimals: int | None = 2) -> str:
    """`1.47`, `.28`; one significant digit, `.003`, instead of zeros. Decimals None: two significant."""
    if decimals is None or value == 0 or abs(value) >= _MOST:
        return significant(value)
    text = cell(value, decimals)
    return significant(value, 1) if _is_nothing(text) else text


def signed(value: float, decimals: int | None = 2) -> str:
    """A number with its sign: `+.79`, `−.02`, `0`."""
    return f"{'+' if value > 0 else ''}{number(value, decimals)}"


def give_or_take(value: float, decimals: int | None = 2) -> str:
    """`±.07`; empty for NaN."""
    return "" if math.isnan(value) else f"±{number(abs(value), decimals)}"


def with_error(value: float, error: float) -> str:
    """A change with its error, `+.064 ±.013`: two digits of the error, and as many decimals for both."""
    if not 1e-6 * abs(value) < error < 100:  # less is rounding
        return f"{signed(value, None)} {give_or_take(error, None)}".strip()
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{signed(value, decimals)} {give_or_take(error, decimals)}"


def significant(value: float, digits: int = 2) -> str:
    """`value` to so many significant digits: `.021`, `1.3`, `12,345`, `3.1e-8`, `0`."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else cell(value)
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    if _LEAST <= abs(value) < _MOST:
        return cell(value, max(0, digits - 1 - int(exponent)))
    return f"{MINUS if value < 0 else ''}{mantissa}e{int(exponent)}"


def parameter(value: float, digits: int = 4) -> str:
    """A parameter without trailing zeros, at most `digits` significant: `.1768`, `.125`, `50`."""
    mantissa, e, exponent = significant(value, digits).partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent


def cell(value: float, decimals: int = 2) -> str:
    """A number in a matrix or grid, with a fixed number of decimals: `.28`, `−.03`, `.00`."""
    if not math.isfinite(value):
        return NONE if math.isnan(value) else f"{MINUS if value < 0 else ''}∞"
    digits = f"{abs(value):,.{decimals}f}"
    minus = MINUS if value < 0 and not _is_nothing(digits) else ""
    return minus + (digits.removeprefix("0") if decimals else digits)


def signed_cell(value: float, decimals: int = 2) -> str:
    """A signed number in a matrix or grid: `+.79`, `−.02`, `.00`."""
    text = cell(value, decimals)
    return f"+{text}" if value > 0 and not _is_nothing(text) else text


def _is_nothing(digits: str) -> bool:
    return not digits.strip("0.")


def weight(value: float, decimals: int = 2) -> str:
    """A weight from 0 to 1 that stands alone: `.87`, `1.0`, `<.01`, `0`; `-` for NaN."""
    text = weight_cell(value, decimals)
    if not _is_nothing(text):
        return text
    return f"<.{'1':0>{decimals}}" if value > 0 else "0"


def weight_cell(value: float, decimals: int = 2) -> str:
    """A weight in a matrix, in `decimals + 1` characters: `.87`, `1.0`, `.00`."""
    text = cell(value, decimals)
    return text[: decimals + 1] if text.startswith("1.") else text


def chance(probability: float, decimals: int = 1) -> str:
    """A probability in per cent, so that it cannot be read as a weight: `8.3 %`, `>99.9 %`, `<0.1 %`."""
    if not 0 < probability < 1:
        return NONE if math.isnan(probability) else f"{100 * probability:.0f} %"
    text, least = f"{100 * probability:.{decimals}f}", 10.0**-decimals
    ends = {0.0: f"<{least:.{decimals}f}", 100.0: f">{100 - least:.{decimals}f}"}
    return f"{ends.get(float(text), text)} %"


def likely(probability: float) -> str:
    """A probability in per cent; below 0.1 % as `1 in 50,000`."""
    if not 0 < probability < _RARE:
        return chance(probability)
    return f"1 in {significant(float(f'{1 / probability:.1e}'))}"


def percent(share: float) -> str:
    """A share in per cent: `43 %`, `3.1 %`, `99.8 %`, `<0.1 %`, `0 %`."""
    return per_hundred(100 * share)


def per_hundred(value: float) -> str:
    """A value already in per cent (such as a percentile), written like `percent`."""
    size, minus = abs(value), MINUS if value < 0 else ""
    if not math.isfinite(value):
        return cell(value)
    if 0 < size < 0.05:
        return f"above {MINUS}0.1 %" if minus else "<0.1 %"
    if 99.95 <= value < 100 * (1 - _ROUNDING):
        return ">99.9 %"
    tenths = 0 < size < 9.95 or 99 < size < 99.95
    return f"{minus}{size:,.{1 if tenths else 0}f} %"


def amount(value: float, unit: str) -> str:
    """An amount to three digits with a metric prefix: `438 MB`, `97.2 GFLOP`, `109 M`."""
    digits, power = _by_thousands(value)
    return f"{digits} {_PREFIXES[power]}{unit}".rstrip()


def roughly(count: int) -> str:
    """A count to three digits: `624 thousand`, `109 million`, `671 billion`."""
    digits, power = _by_thousands(count)
    return f"{digits}{_SCALES[power]}"


def _by_thousands(value: float) -> tuple[str, int]:
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    places = 0 if value >= 99.95 or power == 0 else 1 if value >= 9.995 else 2
    return f"{value:.{places}f}", power


def alike(
    values: Float[np.ndarray, "..."], decimals: int, write: Callable[..., str] = cell
) -> Callable[[float], str]:
    """The function that writes the cells of a matrix, all with the same decimals, by `write`.

    `decimals` are for values from 0.1 to 1000; where all are smaller there are up to two more, of larger ones
    none, and beyond that every cell has its own digits that tell.
    """
    extent = largest_magnitude(values)
    if extent and not _LEAST <= extent < _MOST:
        return partial(signed, decimals=None) if write is signed_cell else significant
    more = 2 if 0 < extent < 0.01 else 1 if 0 < extent < 0.1 else 0
    return partial(write, decimals=0 if extent >= 1000 else decimals + more)


def alike_texts(values: Float[np.ndarray, "..."], decimals: int) -> Shaped[np.ndarray, "..."]:
    """Every value of a matrix as text, an object array of the same shape."""
    return in_words(alike(values, decimals), values)


def in_words(word: Callable[[float], str], values: Float[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """Every value written by `word`, as an object array of the same shape."""
    words: Shaped[np.ndarray, " ..."] = np.empty(values.shape, object)
    for place, value in np.ndenumerate(values):
        words[place] = word(value)
    return words


def largest_magnitude(values: Float[np.ndarray, "..."]) -> float:
    """Largest finite absolute value, 0 where there is none."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def descending(values: Float[np.ndarray, " key"]) -> list[int]:
    """Indices by falling value, ties in order, NaN last."""
    return [int(i) for i in np.argsort(-values, kind="stable")]


def counted(number: int, noun: str) -> str:
    """A count with its noun: `1 head`, `1,024 heads`, `3 queries`, `2 patches`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith(("ch", "ss")) else "s")


def pooled(values: Float[np.ndarray, "row column"], rows: int, columns: int) -> Float[np.ndarray, "r c"]:
    """Blocks of `rows` x `columns` reduced to the value farthest from 0; NaN for a block without values."""
    for axis, each in enumerate((rows, columns)):
        starts = np.arange(0, values.shape[axis], each)
        high, low = (find.reduceat(values, starts, axis=axis) for find in (np.fmax, np.fmin))
        values = np.where(-low > high, low, high)
    return values


Row = tuple[object, ...]
# ends of columns that are names, even where they look like numbers or are empty
CALLED = ("token", "tokens", "label", "name", "tower", "side")
# a cell's first character that is a formula's, and what follows up to where the next one could begin
_FORMULA = re.compile(r"""((?:^|[,;])[\s"]*)([=+\-@＝＋－＠][^,;]+)""")


def exact(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value))


def harmless_cell(text: str) -> str:
    """`text` without terminal controls and spreadsheet formulas (cells that begin with `= + - @`).

    An apostrophe before it keeps it a text: wherever a cell could begin in `text`, at its start and behind a
    comma or semicolon. A single such character is no formula, nor is a number.
    """

    def kept_a_text(begun: re.Match[str]) -> str:
        try:
            float(begun[2])
        except ValueError:
            return f"{begun[1]}'{begun[2]}"
        return begun[0]

    return _FORMULA.sub(kept_a_text, printable(text))
