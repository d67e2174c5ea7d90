"""A result for every case and every optional part of what `cite` says."""

from collections.abc import Callable
from dataclasses import replace

import made_citation as made
import numpy as np

from attnscope.render.sheets import citation
from attnscope.results import Citation
from attnscope.results.claims.citation import Case, Column, Method

SAID, CASES = citation.said, Case


def lost(*nats: float, **of_statement: object) -> Citation:
    """What one sentence loses without each passage, of three or fewer."""
    whole = made.citation()
    own = replace(whole.statements[0], controls=(), **of_statement)
    columns = tuple(
        each if each.values is None else replace(each, values=each.values[:, : len(nats)])
        for each in whole.columns
    )
    passages = whole.passages[: len(nats)]
    return replace(whole, passages=passages, statements=(own,), lost=np.array([nats]), columns=columns)


def three() -> Citation:
    """Three of four passages, without any of which it is gone."""
    whole = lost(4.0, 3.9, 3.8, candidates=(0, 1, 2))
    column = Column(Method("attention"), np.full((1, 4), 0.2))
    four, gone = (*whole.passages, whole.passages[0]), np.array([[4.0, 3.9, 3.8, 0.01]])
    return replace(whole, passages=four, lost=gone, columns=(column,))


def rare(*cases: str) -> Citation:
    result = made.citation(*cases)
    return replace(
        result, statements=tuple(replace(each, log_probability=-9.0) for each in result.statements)
    )


def fitted(*r2: float) -> Citation:
    result = made.citation(*("from" for _ in r2), subsets=16)
    every = zip(result.statements, r2, strict=True)
    return replace(result, statements=tuple(replace(each, r2=own) for each, own in every))


def by_all() -> Citation:
    """Every way of ranking has numbers."""
    result = made.citation()
    given = result.columns[0].values
    columns = (Column(each, given) for each in list(Method)[2:8])
    return replace(result, columns=tuple(columns), kept="", copying=tuple((0, i) for i in range(10)))


EXAMPLES: dict[str, Callable[[], Citation]] = {
    "from one": made.citation,
    "from another than attention says": lambda: made.citation(attention=0.15),
    "from two": lambda: made.citation("two"),
    "from three": three,
    "from one of two": lambda: lost(4.0, 0.02),
    "from none": lambda: made.citation("none"),
    "from none of two": lambda: lost(0.1, 0.02, candidates=(), without_all=0.1),
    "likelier without all": lambda: lost(0.1, 0.02, 0.1, candidates=(), without_all=-0.05),
    "from all": lambda: made.citation("spread"),
    "half of the others do as much": lambda: made.citation("controlled"),
    "most from one of two": lambda: lost(8.0, 1.0, candidates=(), without_all=8.2),
    "hardly more from one of two": lambda: lost(0.6, 0.5, candidates=(), without_all=8.2),
    "of several": lambda: made.citation("none", "from", "spread", "none"),
    "of several that are rare": lambda: rare("none", "from"),
    "rare": rare,
    "rarer with all": lambda: replace(
        lost(0.1, 0.02, 0.1), statements=(replace(rare().statements[0], candidates=(), without_all=-0.05),)
    ),
    "by subsets": lambda: fitted(0.8),
    "by subsets of several": lambda: fitted(0.1, 0.8),
    "by subsets that all did the same": lambda: fitted(float("nan")),
    "by all": by_all,
}
