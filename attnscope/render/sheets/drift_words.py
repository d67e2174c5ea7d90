"""The sentences of what a tuning changed: which head moved most, beside rounding, and by whose doing."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.numbers import counted, percent, significant
from attnscope.results import Drift
from attnscope.results.claims.drift import SAME, Case, Place

_FEW = 8  # texts: of fewer the answer says how few


def answer(result: Drift) -> str:
    """Other answers, the verdict over a limit, what moved most beside rounding, whose doing it is."""
    told = {Case.SAME: _same, Case.WITHIN: _within, Case.MOVED: _moved}[result.case](result)
    limit = "" if result.limit is None else _over(result)
    first, last = (_apart(result), "") if result.answers_differ else ("", _apart(result))
    return " ".join(each for each in (first, limit, told, last, _put_back(result), _few(result)) if each)


def _over(result: Drift) -> str:
    if not result.exceeding:
        return f"No head moved beyond {percent(result.limit or 0)}."
    return f"{counted(len(result.exceeding), 'head')} moved beyond {percent(result.limit or 0)}."


def _same(result: Drift) -> str:
    """That no head changed, or nothing did, to what precision, and what rounding would have done."""
    written = "" if np.isnan(result.written).any() else f", and writes the same to 1 part in {1 / SAME:,.0f}"
    what = "Nothing" if result.answers_by and not result.answers.any() else "No head"
    return (
        f"{what} changed: each of {counted(result.mean.size, 'head')} attends the same in A and B, to the "
        f"last bit{written}; {_rounding(result)}."
    )


def _most(result: Drift) -> str:
    """`L1 H5 moved most: 17 % of what its queries give goes to other tokens`."""
    place = result.ranking[0]
    share = percent(float(result.mean[place]))
    return f"{result.name(place)} moved most: {share} of what its queries give goes to other tokens"


def _rounding(result: Drift) -> str:
    return f"{result.floor_by} alone moves a head by {percent(float(result.loudest.mean()))} at most"


def _within(result: Drift) -> str:
    own = _own(result)
    return f"No head moved further than rounding moves one: {_most(result)}; {_rounding(result)}.{own}"


def _moved(result: Drift) -> str:
    count = f"{len(result.beyond):,} of {counted(result.mean.size, 'head')}"
    first = "" if result.ranking[0] in result.beyond else "In the mean "
    return f"{first}{_most(result)}; {_rounding(result)}. {count} moved further than that.{_own(result)}"


def _own(result: Drift) -> str:
    """How many changed by their own weights, and which did most, where that is told."""
    touched = result.touched
    if touched is None or len(touched) == result.mean.size:
        return ""
    if not touched:
        return " None of them changed by its own weights: they only hear of a change elsewhere."
    names = _listed(result, touched)
    verb = "has weights of its own that changed" if len(touched) == 1 else "have weights that changed"
    alone = not result.own_mean[touched[0]] > 0
    rest = " (it looks at the same tokens and writes something else)" if alone else ""
    return f" Only {names} {verb}{rest}; the others hear of it."


def _listed(result: Drift, places: tuple[Place, ...]) -> str:
    """`L1 H5`, `L1 H5 and L2 H0`, `L1 H5, L2 H0 and 4 more`."""
    named = [result.name(place) for place in places]
    if len(named) < 3:
        return " and ".join(named)
    return f"{', '.join(named[:2])} and {len(named) - 2:,} more"


def _apart(result: Drift) -> str:
    """How far the answers of both models lie apart, beside what rounding does to one."""
    if not result.answers_by:
        return f"The answers are not compared: {result.unanswered}."
    if not result.answers.any():
        return "" if result.case is Case.SAME else "The answers are the same."
    far, floor = (significant(float(each.mean())) for each in (result.answers, result.answers_floor))
    unit = "nats" if "nats" in result.answers_by else "of cosine"
    if result.answers_differ:
        return (
            f"A and B answer differently: {far} {unit} apart, where {result.floor_by} moves one by {floor}."
        )
    return f"The answers lie {far} {unit} apart, no further than {result.floor_by} moves them ({floor})."


def _put_back(result: Drift) -> str:
    """What putting the head that moved most back does to the answer, beside other heads."""
    back = result.put_back
    if back is None or not result.answers_differ:
        return ""
    gone, others = float(back.restored[0]), float(back.restored_by_others[0])
    layer, head = back.heads[0]
    beside = "" if others != others else f", another head of its layer {percent(others)}"
    return (
        f"L{layer} H{head} of A put back takes {percent(gone)} of the difference of the answers away{beside}."
    )


def _few(result: Drift) -> str:
    texts = len(result.texts)
    return f"Over only {counted(texts, 'text')}." if texts < _FEW else ""


def read(result: Drift) -> str:
    file = f" of {result.file}" if result.file else ""
    return f"{counted(len(result.texts), 'text')}{file}"


def control(result: Drift) -> str:
    return f"the same heads of A in {result.floor_by}, over the same texts"


def notes(result: Drift) -> Iterator[str]:
    yield from result.notes
    if result.put_back is not None and result.answers_differ:
        every = percent(result.put_back.restored_by_every)
        yield f"all heads of A put back take {every} of the change of the answer away; the rest is no head's"
    elif result.answers_by and result.put_back is None and result.case is not Case.SAME:
        yield f"no head was put back: {result.unanswered}"
