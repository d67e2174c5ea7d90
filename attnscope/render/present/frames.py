"""A result as a table of pandas with its axes named: matrices as they are, all else as the rows of its CSV.

pandas is no dependency: it is imported when a table is asked for.
"""

from collections import Counter
from collections.abc import Callable
from functools import singledispatch
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnscope.errors import InputError
from attnscope.render.files import rows
from attnscope.render.kit.numbers import CALLED
from attnscope.render.kit.stage import panel
from attnscope.render.sheets import focus_on
from attnscope.results import HeadScores, HeadView, HeadWeights, Overview, PictureAttention, Result
from attnscope.tokens import Tokens

if TYPE_CHECKING:
    from pandas import DataFrame


def to_pandas(result: Result, show: str | None = None) -> "DataFrame":
    """The numbers of a result with their names, `show` a stage of a head; `attrs` has the verdict.

    Raises `InputError` where pandas is not installed.
    """
    try:
        import_module("pandas")
    except ImportError as error:
        needed = "a table needs pandas, which is not installed: pip install 'attnscope[pandas]'"
        raise InputError(needed) from error
    focus = focus_on(result, show)
    frame = _stage(result, focus.stage) if isinstance(result, HeadWeights | HeadView) else _frame(result)
    if result.verdict is not None:
        frame.attrs["verdict"] = result.verdict.value
    return frame


def _stage(result: HeadWeights | HeadView, stage: Any) -> "DataFrame":
    import pandas

    shown = panel(result, stage)
    columns = range(shown.values.shape[1]) if shown.column_tokens is None else unique(shown.column_tokens)
    return pandas.DataFrame(
        shown.values,
        index=pandas.Index(unique(shown.row_tokens), name=shown.row_word),
        columns=pandas.Index(list(columns), name=shown.column_word),
    )


def unique(tokens: Tokens) -> list[str]:
    """The labels of the tokens; where a token happens to be called as another's label, with its position."""
    count = Counter(tokens.labels)
    whole = zip(tokens.positions, tokens.labels, strict=True)
    return [label if count[label] == 1 else f"{label} ({position})" for position, label in whole]


@singledispatch
def _frame(result: Any) -> "DataFrame":
    import pandas

    heading, *lines = rows(result)
    columns = dict(zip(map(str, heading), map(list, zip(*lines, strict=True)), strict=True))
    return pandas.DataFrame(
        {name: each if name.endswith(CALLED) else _numbers(each) for name, each in columns.items()}
    )


def _numbers(column: list[Any]) -> list[Any]:
    try:
        return [each if isinstance(each, int) else float(each if each != "" else "nan") for each in column]
    except ValueError:
        return column


def _overview(result: Overview) -> "DataFrame":
    import pandas

    layers = pandas.Index(result.layers, name="layer")
    heads = pandas.Index(result.heads, name="head")
    each = {
        name: pandas.DataFrame(_values(scores), index=layers, columns=heads)
        for name, scores in result.scores.items()
    }
    return next(iter(each.values())) if len(each) == 1 else pandas.concat(each, axis=1, names=["measure"])


def _values(scores: HeadScores) -> Any:
    if not scores.description.classes:
        return scores.values
    layers, heads = scores.values.shape
    return [[scores.class_of(i, j) for j in range(heads)] for i in range(layers)]


def _picture(result: PictureAttention) -> "DataFrame":
    import pandas

    index, columns = (
        pandas.RangeIndex(size, name=axis)
        for size, axis in zip(result.weights.shape, ("row", "column"), strict=True)
    )
    return pandas.DataFrame(result.weights, index=index, columns=columns)


_FRAMES: dict[type, Callable[[Any], Any]] = {Overview: _overview, PictureAttention: _picture}
for _kind, _of_kind in _FRAMES.items():
    _frame.register(_kind, _of_kind)
