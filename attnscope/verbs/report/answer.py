"""Answers `report`: one query of one head with its map, contributions, statistics and prediction."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.scores.dense import apply_measures, evenly_spread, unplaced
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import HeadAttention, HeadScores, Kind, MeasureDescription
from attnscope.session.choosing import Chosen
from attnscope.session.opening import look_at, map_head
from attnscope.session.question import Answer
from attnscope.session.questions.heads import OpenedHeads, laid_over
from attnscope.session.reading import Reading
from attnscope.session.which import Name
from attnscope.tokens import Tokens
from attnscope.verbs.predict.answer import predict_beside
from attnscope.verbs.report.question import ReportHead
from attnscope.verbs.report.result import Report

_ON_SPECIAL = MeasureDescription(
    name="special tokens",
    unit="weight",
    meaning="Mean weight of a query on special tokens.",
    label="weight on special tokens",
)
ONE_QUERY = "a report is of one query, whose scores and output it takes apart"


def report(reading: Reading, chosen: Chosen, asked: ReportHead) -> Answer[Report]:
    """Report on one query of the head, by default `default_query`."""
    head = OpenedHeads(reading, chosen).head()
    view, query = look_at(head, asked.looking), _position(head.query_tokens, asked.query)
    if query is None:
        query = default_query(head, reading.encoded.mask_id)
    projection = map_head(head, asked.settings, reading.listener)
    prediction = predict_beside(reading, head.kind)
    if view is not None and view.query_row(query) is None:
        name = head.query_tokens.labels[query]
        raise InputError(
            f"the query {name} is a special token and left out: --special show, or another query"
        )
    result = Report(projection, query, contributions(head, query), statistics(head), prediction, view)

    def laid() -> dict[str, Any]:
        over = reading.lies_over_medium(chosen)
        return {"laid": laid_over(reading, result.head, result.query) if over else None}

    drawn_by = asked.looking, asked.settings, result.query
    return Answer(result, every_head=lambda: [result], beside=laid, drawn_by=drawn_by)


def check_query(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: ReportHead) -> None:
    """Raise `InputError` for a query that is missing or is several tokens, before weights load."""
    if queries is not None:
        _position(queries, asked.query)


def _position(tokens: Tokens, query: Name | None) -> int | None:
    return None if query is None else tokens.span(query).one(f"{ONE_QUERY}, choose one of these")


def contributions(head: HeadAttention, query: int) -> Float[np.ndarray, " key"]:
    """Share of each key in the output of a query: weight times value, projected on the output.

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
    """Scores of one head by every brief registered measure, and its mean weight on special tokens.

    Each has the score of even attention beside it. Positional measures are NaN where queries and
    keys are not the same tokens.
    """
    brief = tuple(name for name, measure in MEASURES.items() if measure.brief)
    layers, heads = (head.layer,), (head.head,)
    without_place = unplaced(head.kind, head.query_tokens, head.key_tokens)
    special = np.array([token.special for token in head.key_tokens.items], dtype=bool)
    both, on_special = (head.weights, evenly_spread(head.allowed)), list[Float[np.ndarray, "1 1"]]()
    every, of_even = (
        apply_measures([[torch.from_numpy(each)]], brief, layers=layers, heads=heads, unplaced=without_place)
        for each in both
    )
    for rows in (each[head.answered] for each in both):
        on_special.append(np.array([[rows[:, special].sum(axis=1).mean() if len(rows) else np.nan]]))
    found = (replace(one, even_attention=of_even[name].values) for name, one in every.items())
    return (*found, HeadScores(_ON_SPECIAL, layers, heads, on_special[0], even_attention=on_special[1]))


def default_query(head: HeadAttention, mask_id: int | None) -> int:
    """Query to report: the first mask; in a decoder the last token; else the row with the largest weight.

    Special tokens are skipped. Early rows of a decoder have large weights only because they see few keys.
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
