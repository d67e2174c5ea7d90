"""One word in two readings."""

from attnscope.errors import InputError
from attnscope.results import (
    Comparison,
)
from attnscope.session.library.readings import Reading
from attnscope.session.questions.comparison import compare_in_layers, compare_readings
from attnscope.session.request import Looking, Numbers, Wanted


def compare(
    a: Reading,
    b: Reading,
    word: str | int,
    word_b: str | int | None = None,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: int | None = None,
    kind: str | None = None,
    tower: str | None = None,
    words: bool = False,
    special: str | None = None,
) -> Comparison:
    """One word in two readings, of one model or of two, or with `layer_b` in two layers of one reading.

    How alike its vectors are in every layer, and one head in full: of those that `layer` and `head` name the
    one that differs most. With `words` a word may have been cut into pieces; `special` tokens are shown,
    hidden in the rows that are shown, or with `renormalise` left out of all rows.
    """
    wanted, looking = Wanted(layer, head, kind, tower), Looking(words, special)
    names = str(word), str(word if word_b is None else word_b)
    first = a._read(wanted.all_layers)
    if layer_b is not None:
        if a is not b:
            raise InputError("layer_b compares two layers of one reading: give the same reading twice")
        return compare_in_layers(*first, names[0], layer, layer_b, looking)
    return compare_readings(first, b._read(wanted.all_layers), names, layer, looking)
