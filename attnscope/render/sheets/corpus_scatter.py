"""How the texts of a corpus scatter: the first heads with their intervals, and all heads layer by layer."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from attnscope.render.kit.numbers import counted
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Curve, Ranking
from attnscope.render.sheet.said import named
from attnscope.render.sheet.table import Column, Line, Mark, Table
from attnscope.render.sheets import corpus_words as words
from attnscope.render.sheets.overview_words import form_of_tokens
from attnscope.results import Corpus

_FIRST = 10


def scattered(result: Corpus, in_tokens: bool) -> Iterator[Ranking | Curve]:
    """The first heads by the main measure with how texts scatter, and all heads layer by layer.

    None of a measure that is a class, nor where heads are ranked by a link.
    """
    main, places = result.main, measured.ranked(result.main.scores)
    if main.agreement is not None or not places or result.linked:
        return
    turned: Callable[[Any], Any] = np.exp if in_tokens else float
    form = form_of_tokens if in_tokens else partial(measured.written, main.scores)
    what = "tokens looked at" if in_tokens else main.scores.description.title
    first = places[:_FIRST]
    means = [float(turned(main.values[each])) for each in first]
    low, high = ([float(turned(main.quantiles[level][each])) for each in first] for level in (0, -1))
    errors = [float(main.error[each] * (turned(main.values[each]) if in_tokens else 1.0)) for each in first]
    yield Ranking(
        title=f"the first {counted(len(first), 'head')} by {what}",
        of="head",
        names=tuple(named(result, each) for each in first),
        table=Table(
            Column("mean", means, "mean", form),
            Column("error", errors, "± standard error", words.error, "over texts"),
            Column("low", low, "5 %", form),
            Column("high", high, "95 %", form, "of the texts: so many are not above it"),
        ),
        measured=what,
        marks=(
            Mark("span", "own", "5 to 95 % of the texts", low, high),
            Mark("dot", "own", "mean over texts", means),
        ),
        hidden=len(places) - len(first),
    )
    if len(result.layers) > 1:
        values = turned(main.values) if in_tokens else main.values
        dots = [[float(each) for each in row if not np.isnan(each)] for row in values]
        layers = [float(np.mean(row)) if row else None for row in dots]
        yield Curve(
            title=f"{what}, layer by layer",
            of="layer",
            names=tuple(f"L{each}" for each in result.layers),
            table=Table(Column("mean", layers, "mean of heads", form)),
            places=tuple(map(float, result.layers)),
            named=True,
            measured=what,
            lines=(
                Line("points", "own", "each head", dots),
                Line("line", "own", "mean of its heads", layers),
            ),
        )
