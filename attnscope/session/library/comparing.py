"""One word in two readings."""

from pathlib import Path

from attnscope.errors import InputError
from attnscope.results import Comparison, CorpusDifference, Difference, Result, load
from attnscope.session.library.readings import Reading
from attnscope.session.questions.claims.difference import compare_any
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


def difference(
    a: Result | str | Path,
    b: Result | str | Path,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: Numbers = None,
    head_b: Numbers = None,
) -> Difference | CorpusDifference:
    """What each query of run `b` gives more than under run `a`: overviews or heads, or files that hold them.

    Texts, checkpoints, kernels and precisions may differ, not the number of tokens. Heads of one number are
    held against each other; with `layer_b` or `head_b` that head of `b`, and of two single heads these two.
    Of two corpora it is the difference of the mean of every head, with its standard error.
    """
    names = [Path(run).name if isinstance(run, str | Path) else "AB"[i] for i, run in enumerate((a, b))]
    first, second = (load(run) if isinstance(run, str | Path) else run for run in (a, b))
    return compare_any(first, second, (names[0], names[1]), layer, head, layer_b, head_b)
