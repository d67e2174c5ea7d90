"""One query of one head: what each key adds to its output, the head in numbers, what the model predicts.

A picture of it is a page of its own design, in `render.report`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np

from attnscope.printable import printable
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import NONE, counted, likely, number, percent, signed, weight
from attnscope.render.kit.words.command import asking
from attnscope.render.kit.words.weights import divides, key_groups, special_words, view_words
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
from attnscope.render.sheets.head_words import said
from attnscope.render.sheets.map import DISCLAIMER, nearness_words, token_name
from attnscope.render.sheets.prediction import sheet as predicted_sheet
from attnscope.render.sheets.telling import next_question
from attnscope.results import Blank, HeadScores, Report
from attnscope.results.base.distances import even as even_weight

_NOT_COMPARED = "Not yet compared with other texts."
_MOST_KEYS, _FEW_KEYS = 25, 8  # that -v and the page list, and a first screen
_MORE_THAN_ALL = 1.005  # a share that is written as more than 100 %
_LONGEST = 60  # cells of a text that the model wrote


@dataclass(frozen=True)
class Share:
    """One key of the query, or the rest of them together (`key` None), with its weight and its share."""

    key: int | None
    name: str
    weight: float
    share: float


@dataclass(frozen=True)
class Fact:
    """One figure of the head or of its map: what it is called, its value, and what that means."""

    name: str
    value: str
    meaning: str


def sheet(result: Report, focus: Focus = WHOLE) -> Sheet:
    head = result.head
    predicted = () if result.prediction is None else predicted_sheet(result.prediction).every
    further = (*predicted, _numbers(result))
    seen = " · ".join(view_words(result.weights))
    return Sheet(
        title=f"{head.name}, query {query_name(result)}",
        setting=setting(head),
        origins=(head.provenance,),
        answer=_answer(result),
        blocks=(*_listed(result, _MOST_KEYS), *further) if focus.verbose else (*_listed(result, _FEW_KEYS),),
        table=lambda: Table.of("key token weight score scaled distance contribution", _facts(result)),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        notes=tuple(each for each in (seen, *limits(head)) if each),
        legend=(DISCLAIMER, *features(head)),
        details=tuple(each for each in (special_words(head.special_mass),) if each),
        proof=certified(head.certificate, focus.verbose),
        summary=(attention(head.kind, head.tower),),
        record=(*of_head(head), ("query", result.query)),
        next=_next(result),
        more=() if focus.verbose else further,
    )


def _answer(result: Report) -> str:
    """What the model answers, where the head looks from this query, and which key its output comes from.

    The two stand beside each other: nothing here says that one makes the other.
    """
    told = [_predicted(result)] if result.prediction is not None else []
    return " ".join(each for each in (*told, _looks(result), _NOT_COMPARED) if each)


def _predicted(result: Report) -> str:
    made = result.prediction
    assert made is not None, "a prediction is told where there is one"
    if made.generated is not None and made.generated.text:
        told = settled(fit(printable(made.generated.text), _LONGEST))
        return f"The model writes “{told}”."
    if (blank := _blank(result)) is None:
        return ""
    where = in_sentence(made.tokens, blank.position)
    best = blank.guesses[0]
    said = f"“{settled(printable(best.name))}” ({likely(best.probability)})"
    if made.task == "next":
        return f"After {where} the model goes on with {said}."
    return f"At {where} the model answers {said}."


def _blank(result: Report) -> Blank | None:
    made = result.prediction
    blanks = () if made is None or made.generated is not None else made.blanks
    guessed = [each for each in blanks if each.guesses]
    return next((each for each in guessed if each.position == result.query), guessed[0] if guessed else None)


def _even(result: Report, key: int) -> float:
    if result.view is not None and result.view.by.joins:
        return float(result.view.even[result.row, key])
    return even_weight(result.weights.allowed, result.row)


def _looks(result: Report) -> str:
    query = in_sentence(result.head.query_tokens, result.query)
    blank = _blank(result)
    start = "From there" if blank is not None and blank.position == result.query else f"From {query},"
    every = _every_share(result)
    if not every:
        return f"{start} {result.head.name} looks nowhere: {shares_remark(result)}."
    most, heaviest = (max(every, key=attrgetter(name)) for name in ("share", "weight"))
    labels = [in_sentence(result.weights.key_tokens, each.key or 0) for each in (most, heaviest)]
    around = weight(_even(result, heaviest.key or 0))
    told = f"{start} {result.head.name} looks most at {labels[1]} ({weight(heaviest.weight)}; if "
    told += f"all tokens got the same: {around}), and "
    if most.key == heaviest.key:
        back = ", other keys pull back" if most.share >= _MORE_THAN_ALL else ""
        return f"{told}{percent(most.share)} of what it writes there comes from {labels[0]}{back}."
    told += f"the largest part of what it writes there, {percent(most.share)}, comes from {labels[0]} "
    return f"{told}({weight(most.weight)})."


def _next(result: Report) -> Next | None:
    head, made = result.head, result.prediction
    if made is not None and made.blanks and made.generated is None:
        place = ("--layer", str(head.layer), "--head", str(head.head))
        return Next("does the answer need this head?", asking(head, "ablate", *place))
    if result.view is not None or not head.answered[result.query]:
        return None
    key = int(np.where(head.allowed[result.query], head.weights[result.query], -1.0).argmax())
    return next_question(head, said(head), result.query, key)


def _listed(result: Report, most: int) -> Iterator[Ranking]:
    if not (listed := shares(result, most)):
        return
    given = [each.share for each in listed]
    yield Ranking(
        title=f"from {in_sentence(result.head.query_tokens, result.query)}",
        of="key",
        names=tuple(_aligned(listed)),
        table=Table(
            Column("weight", [each.weight for each in listed], "weight", partial(weight, decimals=3)),
            Column("contribution", given, "share of output", percent,
                   "what the key's value adds to the head's output, all keys together 100 % (Kobayashi et "
                   "al. 2020)"),
        ),
        measured="share of the output vector",
        marks=(
            Mark("bar", "gains", "adds", only(given, [each >= 0 for each in given])),
            Mark("bar", "loses", "pulls back", [-each if each < 0 else None for each in given]),
        ),
        axis=(0.0, max(map(abs, given)) or 1.0),
        faint=frozenset(i for i, each in enumerate(listed) if each.key is None),
        says=shares_remark(result),
    )  # fmt: skip


def _aligned(listed: list[Share]) -> Iterator[str]:
    digits = max(each.name.find(" ") for each in listed if each.key is not None)
    for each in listed:
        yield each.name if each.key is None else " " * (digits - each.name.find(" ")) + each.name


def _numbers(result: Report) -> Ranking:
    listed = facts(result)
    return Ranking(
        title="the head in numbers",
        of="statistic",
        names=tuple(each.name for each in listed),
        table=Table(
            Column("value", [each.value for each in listed], "value", as_written),
            Column("meaning", [each.meaning for each in listed], "meaning"),
        ),
    )


def _facts(result: Report) -> Iterator[tuple[object, ...]]:
    head, query = result.head, result.query
    of_pairs = head.weights, head.scores, head.scaled, result.projection.distance
    numbers = *(values[query] for values in of_pairs), result.contributions
    for key, (label, *values) in enumerate(zip(head.key_tokens.labels, *numbers, strict=True)):
        yield key, label, *map(exact, values)


def query_name(result: Report) -> str:
    return token_name(result.head.query_tokens, result.query)


def shares(result: Report, most: int) -> list[Share]:
    """The query's allowed keys by falling share; where they are more than `most`, the rest as one.

    Those that move the output most are listed, whichever way. Empty where there is nothing to share out.
    """
    strongest = sorted(_every_share(result), key=lambda each: -abs(each.share))
    listed = strongest if len(strongest) <= most else strongest[: most - 1]
    found = sorted(listed, key=lambda each: (-each.share, each.key))
    rest = strongest[len(listed) :]
    if not rest:
        return found
    given, added = sum(each.weight for each in rest), sum(each.share for each in rest)
    return [*found, Share(None, f"and {counted(len(rest), 'more key')}", given, added)]


def _every_share(result: Report) -> list[Share]:
    head, given, shown = result.head, result.contributions, result.weights
    if not np.isfinite(given[head.allowed[result.query]]).all():
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
    """Why there is nothing to share out, or what the shares leave out; empty where that is nothing."""
    head, query = result.head, result.query
    if not head.answered[query]:
        return "it has no valid key: there is nothing to share out"
    if not np.isfinite(result.contributions[head.allowed[query]]).all():
        return "its output is zero: there is nothing to share out"
    remarks = []
    if left_out := _left_out(result):
        given, added = head.weights[query, left_out].sum(), result.contributions[left_out].sum()
        remarks.append(f"special tokens left out: weight {weight(given)}, share {percent(added)}")
        if divides(result.weights):
            remarks.append("weights divided by what remains")
    if masked := int((~head.allowed[query]).sum()):
        remarks.append(f"{counted(masked, 'key')} masked")
    if head.sink is not None:
        rest = float(1 - head.weights[query, head.allowed[query]].sum())
        remarks.append(f"the sink takes {weight(rest)} of the weight and adds nothing")
    return " · ".join(remarks)


def _left_out(result: Report) -> list[int]:
    kept = {key for group in key_groups(result.weights) for key in group}
    return [key for key in np.flatnonzero(result.head.allowed[result.query]).tolist() if key not in kept]


def facts(result: Report) -> list[Fact]:
    """The statistics of the head, then how far its map can be trusted."""
    found = _statistics(result)
    made = result.projection
    over = f"of the map, over {counted(made.neighbours, 'neighbour')}"
    trust = "of the map: too few points, or all in one place" if math.isnan(made.trustworthiness) else over
    found.append(Fact("trustworthiness", number(made.trustworthiness), trust))
    value, means = NONE, "no two distances or scores differ"
    if not math.isnan(made.correlation):
        value, means = signed(made.correlation), nearness_words(made.correlation)
    found.append(Fact("distance and score", value, means))
    return list(map(harmless, found))


def _statistics(result: Report) -> list[Fact]:
    told: set[str] = set()
    listed = []
    for one in result.statistics:
        described = one.description
        meaning = "likewise" if one.absent in told else one.absent or _measured_words(result, one)
        told |= {one.absent} - {""}
        value = number(float(one.values[0, 0]))
        listed.append(Fact(described.label or described.name, value, meaning))
    return listed


def _measured_words(result: Report, one: HeadScores) -> str:
    described = one.description
    unit = "" if described.label else described.unit
    if not result.head.answered.any():
        return "no query has a valid key"
    if one.even_attention is None:
        return unit
    even = float(one.even_attention[0, 0])
    if described.strong == "high":
        compared = f"even weights give {number(even)}"
        return f"{unit}; {compared}" if unit else compared
    if even == 0:
        return f"{unit}; no query has a choice"
    return f"{unit}, {percent(float(one.values[0, 0]) / even)} of the {number(even)} of even weights"
