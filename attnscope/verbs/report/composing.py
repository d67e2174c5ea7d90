"""One query of one head, with everything that goes on its page."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.scores.dense import apply_measures, evenly_spread, unplaced
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import (
    HeadAttention,
    HeadScores,
    HeadView,
    Kind,
    MeasureDescription,
    Prediction,
    Projection,
)
from attnscope.verbs.report.result import Report

_ON_SPECIAL = MeasureDescription(
    name="special tokens",
    unit="weight",
    meaning="Mean weight of a query on special tokens.",
    label="weight on special tokens",
)


def compose_report(
    projection: Projection, query: int, prediction: Prediction | None, view: HeadView | None = None
) -> Report:
    """The report on `query`; prediction and view are passed on as they are.

    `InputError` where the view leaves that query out.
    """
    head = projection.head
    if view is not None and view.query_row(query) is None:
        name = head.query_tokens.labels[query]
        raise InputError(
            f"the query {name} is a special token and left out: --special show, or another query"
        )
    return Report(projection, query, contributions(head, query), statistics(head), prediction, view)


def contributions(head: HeadAttention, query: int) -> Float[np.ndarray, " key"]:
    """What share of a query's output each key brings: weight times value, projected on the output.

    output = sum of weight x value over the keys, so the shares sum to 1; a negative one pulls the output
    back. NaN where the query has no key or its output is zero.
    """
    output = head.output[query]
    length = float(output @ output)
    if not length > 0:
        return np.full(len(head.k), np.nan)
    shares: Float[np.ndarray, " key"] = head.weights[query] * (head.v @ output) / length
    return shares


def statistics(head: HeadAttention) -> tuple[HeadScores, ...]:
    """Every registered measure that is brief, of this one head, and its mean weight on special tokens.

    Beside each stands what evenly spread weights would have. Positional measures are NaN where queries and
    keys are not the same tokens.
    """
    weights, even = head.weights, evenly_spread(head.allowed)
    every, of_even = (_measured(head, each) for each in (weights, even))
    found = [replace(one, even_attention=of_even[name].values) for name, one in every.items()]
    mass, of_even_mass = (_on_special(head, each) for each in (weights, even))
    place = (head.layer,), (head.head,)
    return (*found, HeadScores(_ON_SPECIAL, *place, mass, even_attention=of_even_mass))


def _measured(head: HeadAttention, weights: Float[np.ndarray, "query key"]) -> dict[str, HeadScores]:
    return apply_measures(
        [[torch.from_numpy(weights)]],
        tuple(name for name, measure in MEASURES.items() if measure.brief),
        layers=(head.layer,),
        heads=(head.head,),
        unplaced=unplaced(head.kind, head.query_tokens, head.key_tokens),
    )


def _on_special(head: HeadAttention, weights: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "1 1"]:
    special = np.array([token.special for token in head.key_tokens.items], dtype=bool)
    rows = weights[head.answered]
    return np.array([[rows[:, special].sum(axis=1).mean() if len(rows) else np.nan]])


def default_query(head: HeadAttention, mask_id: int | None) -> int:
    """The first mask; in a decoder the last token; else the token whose largest weight is the largest.

    Special tokens are passed over. A decoder's early rows look sure only because they see few keys.
    """
    items = head.query_tokens.items
    masks = [i for i, token in enumerate(items) if token.id == mask_id]
    if masks:
        return masks[0]
    spoken = [i for i, token in enumerate(items) if not token.special and head.answered[i]]
    if head.kind is Kind.DECODER and spoken:
        return spoken[-1]
    candidates = spoken or [i for i in range(len(items)) if head.answered[i]] or [0]
    return max(candidates, key=lambda i: float(np.nan_to_num(head.weights[i]).max()))
