"""Several heads as CSV: a row per head with its measures, their controls, its strongest link, its verdict."""

from collections.abc import Iterator
from itertools import product

from attnscope.render.kit.csv import Row, exact, place, rows
from attnscope.results import HeadScores, Overview


@rows.register
def _(result: Overview) -> Iterator[Row]:
    link_names = "query", "query_token", "key", "key_token", "weight"
    held = [(f"{name}_others", each.control) for name, each in result.scores.items()]
    controls = [(name, control) for name, control in held if control is not None]
    yield "layer", "head", *result.scores, *(name for name, _ in controls), *link_names, "verdict"
    for (i, layer), (j, head) in product(enumerate(result.layers), enumerate(result.heads)):
        query, key = (int(position) for position in result.strongest[i, j])
        link = (*place(result.query_tokens, query), *place(result.key_tokens, key))
        weight = exact(result.strongest_weight[i, j])
        verdict = result.certificates[i][j].verdict.value
        values = (_value(each, i, j) for each in result.scores.values())
        others = (exact(control[i, j]) for _, control in controls)
        yield layer, head, *values, *others, *link, weight, verdict


def _value(scores: HeadScores, i: int, j: int) -> str:
    """A number, or the class that it stands for."""
    named = scores.class_of(i, j)
    return exact(scores.values[i, j]) if named is None else named
