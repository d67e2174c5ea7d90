"""Sheet of `report`: contribution of each key to a query's output, statistics of the head, prediction.

Its picture has a design of its own, in `verbs.report.drawing`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np

from attnscope.render.kit.command import asking
from attnscope.render.kit.numbers import NONE, exact, number, percent, signed, weight
from attnscope.render.kit.words import divides, key_groups, special_words, view_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import (
    attention,
    certified,
    features,
    in_sentence,
    limits,
    of_head,
    read,
    setting,
)
from attnscope.render.sheet.sheet import Next, Sheet, harmless
from attnscope.render.sheet.table import Column, Mark, Table, as_written, only
from attnscope.render.sheets import WHOLE, Focus, prediction
from attnscope.render.sheets import head as head_sheet
from attnscope.render.sheets import projection as maps
from attnscope.render.sheets.head import next_question
from attnscope.render.sheets.projection import DISCLAIMER, token_name
from attnscope.render.words import Said
from attnscope.results.base.strongest import even as even_weight
from attnscope.verbs.report.result import Case, Report

_MOST_KEYS, _FEW_KEYS = 25, 8  # most keys listed with -v and on the page; on a first screen


@dataclass(frozen=True)
class Share:
    """Weight and output share of one key, or of all further keys together (`key` None)."""

    key: int | None
    name: str
    weight: float
    share: float


@dataclass(frozen=True)
class Fact:
    """One statistic of the head or of its map: name, value and meaning."""

    name: str
    value: str
    meaning: str


def sheet(result: Report, focus: Focus = WHOLE) -> Sheet:
    head, say = result.head, said(result)
    predicted = () if result.prediction is None else prediction.sheet(result.prediction).every
    further = (*predicted, _numbers(result, say))
    seen = " · ".join(view_words(result.weights))
    listed = _listed(result, say, _MOST_KEYS if focus.verbose else _FEW_KEYS)
    return Sheet(
        title=say("title", query_name(result)),
        setting=setting(head),
        origins=(head.provenance,),
        answer=say(result.case),
        blocks=(*listed, *(further if focus.verbose else ())),
        table=lambda: Table.of("key token weight score scaled distance contribution", _records(result)),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        notes=tuple(each for each in (seen, *limits(head)) if each),
        legend=(DISCLAIMER, *features(head)),
        details=tuple(each for each in (special_words(head.special_mass),) if each),
        proof=certified(head.certificate, focus.verbose),
        summary=(attention(head.kind, head.tower),),
        record=(*of_head(head), ("query", result.query)),
        next=_next(result, say),
        more=() if focus.verbose else further,
    )


def said(result: Report) -> Said:
    """Sentences of `report` about this result, and the facts they use."""
    head, query, every = result.head, result.query, _every_share(result)
    most, looked = (max(every, key=attrgetter(each), default=None) for each in ("share", "weight"))
    facts = {
        "head": head.name,
        "query": in_sentence(head.query_tokens, query),
        "decoder": head.crosses and bool(head.query_tokens.texts),
        "answered": bool(head.answered.any()),
        "looked": looked,
        "looked_at": None if looked is None else in_sentence(result.weights.key_tokens, looked.key or 0),
        "even": None if looked is None else _even(result, looked.key or 0),
        "most": most,
        "most_from": None if most is None else in_sentence(result.weights.key_tokens, most.key or 0),
        "left_out": _left_out(result),
        "divided": divides(result.weights),
        "masked": int((~head.allowed[query]).sum()),
        "sink": None if head.sink is None else float(1 - head.weights[query, head.allowed[query]].sum()),
        "predicted": _predicted(result),
    }
    return Said("report", result, facts)


def _predicted(result: Report) -> str:
    """Sentence of the model's prediction, at the query if it predicts there."""
    made = result.prediction
    if made is not None and made.generated is None:
        guessed = [each for each in made.blanks if each.guesses]
        there = [each for each in guessed if each.position == result.query]
        made = replace(made, blanks=tuple((there or guessed)[:1]), next_sentence=None) if guessed else None
    return "" if made is None else prediction.said(made)(made.case)


def _even(result: Report, key: int) -> float:
    if result.view is not None and result.view.by.joins:
        return float(result.view.even[result.row, key])
    return even_weight(result.weights.allowed, result.row)


def _next(result: Report, say: Said) -> Next | None:
    head, made = result.head, result.prediction
    if made is not None and made.blanks and made.generated is None:
        place = ("--layer", str(head.layer), "--head", str(head.head))
        return Next(say("next_needed"), asking(head, "ablate", *place))
    if result.view is not None or not head.answered[result.query]:
        return None
    key = int(np.where(head.allowed[result.query], head.weights[result.query], -1.0).argmax())
    return next_question(head, head_sheet.said(head), result.query, key)


def _listed(result: Report, say: Said, most: int) -> Iterator[Ranking]:
    if not (listed := shares(result, most)):
        return
    given = [each.share for each in listed]
    yield Ranking(
        title=say("keys_title"),
        of="key",
        names=tuple(_aligned(listed)),
        table=Table(
            Column("weight", [each.weight for each in listed], "weight", partial(weight, decimals=3)),
            Column("contribution", given, say("share_heading"), percent, say("says_share")),
        ),
        measured=say("measured"),
        marks=(
            Mark("bar", "gains", "adds", only(given, [each >= 0 for each in given])),
            Mark("bar", "loses", say("pulls_back"), [-each if each < 0 else None for each in given]),
        ),
        axis=(0.0, max(map(abs, given)) or 1.0),
        faint=frozenset(i for i, each in enumerate(listed) if each.key is None),
        says=shares_remark(result),
    )


def _aligned(listed: list[Share]) -> Iterator[str]:
    digits = max(each.name.find(" ") for each in listed if each.key is not None)
    for each in listed:
        yield each.name if each.key is None else " " * (digits - each.name.find(" ")) + each.name


def _numbers(result: Report, say: Said) -> Ranking:
    listed = facts(result)
    return Ranking(
        title=say("numbers_title"),
        of="statistic",
        names=tuple(each.name for each in listed),
        table=Table(
            Column("value", [each.value for each in listed], "value", as_written),
            Column("meaning", [each.meaning for each in listed], "meaning"),
        ),
    )


def _records(result: Report) -> Iterator[tuple[object, ...]]:
    head, query = result.head, result.query
    of_pairs = head.weights, head.scores, head.scaled, result.projection.distance
    numbers = *(values[query] for values in of_pairs), result.contributions
    for key, (label, *values) in enumerate(zip(head.key_tokens.labels, *numbers, strict=True)):
        yield key, label, *map(exact, values)


def query_name(result: Report) -> str:
    return token_name(result.head.query_tokens, result.query)


def shares(result: Report, most: int) -> list[Share]:
    """Visible keys by output share, the largest first; beyond `most` the rest as one entry.

    Keys with the largest absolute shares are listed. Empty where the query has no key or no output.
    """
    strongest = sorted(_every_share(result), key=lambda each: -abs(each.share))
    listed = strongest if len(strongest) <= most else strongest[: most - 1]
    found = sorted(listed, key=lambda each: (-each.share, each.key))
    rest = strongest[len(listed) :]
    if not rest:
        return found
    given, added = sum(each.weight for each in rest), sum(each.share for each in rest)
    return [*found, Share(None, said(result)("rest", len(rest)), given, added)]


def _every_share(result: Report) -> list[Share]:
    head, given, shown = result.head, result.contributions, result.weights
    if result.case is not Case.LOOKS:
        return []
    groups = key_groups(shown)
    allowed = [key for key, group in enumerate(groups) if head.allowed[result.query, list(group)].any()]
    weights = {key: float(head.weights[result.query, list(groups[key])].sum()) for key in allowed}
    remaining = sum(weights.values()) if divides(shown) else 1.0
    return [
        Share(
            key,
            token_name(shown.key_tokens, key),
            weights[key] / remaining if remaining else float("nan"),
            float(given[list(groups[key])].sum()),
        )
        for key in allowed
    ]


def shares_remark(result: Report) -> str:
    """Remark on missing shares, or on keys that the shares leave out; empty without either."""
    return " · ".join(said(result).lines("remark"))


def _left_out(result: Report) -> Share | None:
    kept = {key for group in key_groups(result.weights) for key in group}
    allowed = np.flatnonzero(result.head.allowed[result.query]).tolist()
    if not (left := [key for key in allowed if key not in kept]):
        return None
    weights, shares = result.head.weights[result.query, left], result.contributions[left]
    return Share(None, "", float(weights.sum()), float(shares.sum()))


def facts(result: Report) -> list[Fact]:
    """Statistics of the head, then trustworthiness of its map and agreement with the scores."""
    say, made = said(result), result.projection
    neighbours = None if math.isnan(made.trustworthiness) else made.neighbours
    trust = Fact("trustworthiness", number(made.trustworthiness), say("trust", neighbours))
    value, means = NONE, say("none_differ")
    if not math.isnan(made.correlation):
        value, means = signed(made.correlation), maps.said(made)("nearness")
    near = Fact("distance and score", value, means)
    return list(map(harmless, (*_statistics(result, say), trust, near)))


def _statistics(result: Report, say: Said) -> Iterator[Fact]:
    absent: set[str] = set()
    for one in result.statistics:
        described, value = one.description, float(one.values[0, 0])
        even = None if one.even_attention is None else float(one.even_attention[0, 0])
        unit = "" if described.label else described.unit
        means = say("means", unit, value, even, described.strong == "high")
        if one.absent:
            means = say("likewise") if one.absent in absent else one.absent
        absent.add(one.absent)
        yield Fact(described.label or described.name, number(value), means)
