"""What a report says, the same for a terminal and for a picture: shares, statistics, what is predicted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.weights import divides, key_groups
from attnscope.render.sheet.said import signed
from attnscope.render.sheets.map import nearness_words, token_name
from attnscope.render.sheets.prediction import pair_words
from attnscope.results import Guess, HeadAttention, HeadScores, Kind, Report
from attnscope.tokens import printable


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


@dataclass(frozen=True)
class Answer:
    """What the model says to the text: likeliest tokens, best first, or a `text`."""

    title: str
    guesses: Sequence[Guess]
    text: str


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
    weight, share = sum(each.weight for each in rest), sum(each.share for each in rest)
    return [*found, Share(None, f"and {counted(len(rest), 'more key')}", weight, share)]


def _every_share(result: Report) -> list[Share]:
    """One for each key or word that the query may look at; empty where there is nothing to share."""
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
        weight, share = head.weights[query, left_out].sum(), result.contributions[left_out].sum()
        remarks.append(f"special tokens left out: weight {weight_text(weight)}, share {percent(share)}")
        if divides(result.weights):
            remarks.append("weights divided by what remains")
    if masked := int((~head.allowed[query]).sum()):
        remarks.append(f"{counted(masked, 'key')} masked")
    if head.sink is not None:
        rest = float(1 - head.weights[query, head.allowed[query]].sum())
        remarks.append(f"the sink takes {weight_text(rest)} of the weight and adds nothing")
    return " · ".join(remarks)


def _left_out(result: Report) -> list[int]:
    """Positions of the keys that the query may look at and that the view leaves out."""
    kept = {key for group in key_groups(result.weights) for key in group}
    return [key for key in np.flatnonzero(result.head.allowed[result.query]).tolist() if key not in kept]


def scores_words(head: HeadAttention) -> str:
    """How the scores that enter the softmax come about."""
    words = f"scaled scores, q·k x {head.scale:.3g}"
    if head.softcap is not None:
        words += f", capped at ±{head.softcap:g}"
    elif not np.allclose(head.scaled[head.allowed], head.scale * head.scores[head.allowed], atol=1e-6):
        words += ", and what the model adds to them"
    return words


def percent(share: float) -> str:
    """`41.3 %`."""
    text = f"{100 * share:.1f}"
    return f"{'0.0' if text == '-0.0' else text} %"


def facts(result: Report) -> list[Fact]:
    """The statistics of the head, then how far its map can be trusted."""
    found = _statistics(result)
    made = result.projection
    over = f"of the map, over {counted(made.neighbours, 'neighbour')}"
    trust = "of the map: too few points, or all in one place" if math.isnan(made.trustworthiness) else over
    found.append(Fact("trustworthiness", _two_decimals(made.trustworthiness), trust))
    value, means = "–", "no two distances or scores differ"
    if not math.isnan(made.correlation):
        value, means = signed(made.correlation), nearness_words(made.correlation)
    found.append(Fact("distance and score", value, means))
    return found


def _statistics(result: Report) -> list[Fact]:
    """One fact a measure; of several without a meaning here only the first says why."""
    told: set[str] = set()
    listed = []
    for one in result.statistics:
        described = one.description
        meaning = "likewise" if one.absent in told else one.absent or _measured_words(result, one)
        told |= {one.absent} - {""}
        value = _two_decimals(float(one.values[0, 0]))
        listed.append(Fact(described.label or described.name, value, meaning))
    return listed


def _measured_words(result: Report, one: HeadScores) -> str:
    """The unit where the name does not tell it, and what even weights would have.

    A measure that is looked for where it is small is told as a share of that.
    """
    described = one.description
    unit = "" if described.label else described.unit
    if not result.head.answered.any():
        return "no query has a valid key"
    if one.even is None:
        return unit
    even = float(one.even[0, 0])
    if described.strong == "high":
        compared = f"even weights give {even:.2f}"
        return f"{unit}; {compared}" if unit else compared
    if even == 0:
        return f"{unit}; no query has a choice"
    return f"{unit}, {100 * float(one.values[0, 0]) / even:.0f} % of the {even:.2f} of even weights"


def answer(result: Report) -> Answer | None:
    """What the page says of the prediction; None where there is none."""
    made = result.prediction
    if made is None:
        return None
    further = "" if made.next_sentence is None else pair_words(made.next_sentence)
    if made.generated is not None and result.head.kind is Kind.ENCODER:
        return Answer("the model writes", (), f"“{printable(made.generated.text)}”")
    blank = next((each for each in made.blanks if each.position == result.query), None)
    if blank is None and made.blanks:
        blank = made.blanks[0]
    if blank is None:
        return Answer("the model says", (), further) if further else None
    if made.generated is not None:
        title = f"after {token_name(result.head.query_tokens, blank.position)} the model writes"
    else:
        place = token_name(made.tokens, blank.position)
        title = f"the model fills {place} with" if made.task == "masked" else "the model goes on with"
    return Answer(title, blank.guesses, further)


def _two_decimals(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"
