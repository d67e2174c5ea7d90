"""Heads ranked by one number, each beside its controls."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, per_hundred, signed, signed_cell, weight, weight_cell
from attnscope.render.kit.words.command import looked_at, opening_head
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    at,
    departures,
    grid_size,
    limits,
    name,
    named,
    proof,
    read,
    setting,
)
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, Tint, Values, only
from attnscope.results import Contents, Finding, Pattern, Special
from attnscope.results.claims.finding import Account
from attnscope.tokens import Patches

_SHOWN = 12
_PATTERNS = {
    Pattern.PREVIOUS: "the previous token",
    Pattern.NEXT: "the next token",
    Pattern.SELF: "the token itself",
    Pattern.FIRST: "the first token",
    Pattern.SAME: "the same token elsewhere",
    Pattern.INDUCTION: "what followed the same token before",
    Pattern.PUNCTUATION: "punctuation",
    Pattern.SPECIAL: "special tokens",
}
_BESIDE = {Pattern.PREVIOUS: "the patch to the left", Pattern.NEXT: "the patch to the right"}
_CONTROLS_TOLD = 3  # under -v; JSON has all of them
_PLURAL = {Contents.TEXT: "words", Contents.PICTURE: "patches", Contents.SOUND: "frames"}
_BARS: dict[Account | None, tuple[Tint, str]] = {
    Account.TEXT: ("own", "by the {of}: neither place nor {part} keeps half"),
    Account.WORD: ("kin", "by the {part}: goes with the key's {own}"),
    Account.PLACE: ("faint", "by the place: stays whatever the {of} holds"),
    None: ("floor", "no more than all keys alike"),
}


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best = result.ranking[0] if result.ranking else None
    ranking = _ranking(result)
    measured, change = "divergence" if result.smaller_is_better else "weight", Scale.around(result.difference)
    control = Companion.numbers("mean of its controls", result.controls.mean, weight_cell)
    pieces = " by tokens" if result.words or result.special is not Special.SHOW else ""
    return Sheet(
        title=_subject(result),
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(
            ranking,
            _grid(result, "difference to the mean of its controls", result.difference, change),
            _grid(result, measured, result.weights, _scale(result), control),
        ),
        table=lambda: _table(result, result.ranking),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        control=_control(result),
        notes=(*_notes(result), *limits(result)),
        details=tuple(_details(result)),
        departs=(*departures(result.words, result.special), *_departures(result)),
        proof=proof((each for row in result.verdicts for each in row), "head", pieces),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking,
        summary=(counted(result.weights.size, "head"), f"best {named(result, best)}" if best else ""),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result),
        opens=_opens(result, best or (0, 0)),
    )


def _subject(result: Finding) -> str:
    """What heads are ranked by: `weight of 7 [MASK] → 5 door`."""
    sought = result.sought
    if sought.like is not None:
        return f"Jensen-Shannon divergence from {name(*sought.like)} in nats"
    if sought.pattern is not None:
        return f"weight on {_pattern(result, sought.pattern)}, mean of {counted(result.rows, 'query')}"
    assert sought.query is not None, "a pair, where nothing else is sought"
    assert sought.key is not None, "a pair has both"
    return f"weight of {at(result.query_tokens, sought.query)} → {at(result.key_tokens, sought.key)}"


def _pattern(result: Finding, pattern: Pattern) -> str:
    """The keys that are meant, as they are called of words, patches or frames."""
    tokens, words = result.key_tokens, _PATTERNS[pattern]
    if not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches):
        words = _BESIDE.get(pattern, words)
    if tokens.texts or not tokens.stretches:
        return words.replace("token", "word") if result.words and pattern is not Pattern.SPECIAL else words
    named = {Pattern.FIRST: "the first key", Pattern.SPECIAL: "the model's own tokens"}
    return named.get(pattern, words.replace("token", result.controls.of.part))


def _scale(result: Finding) -> Scale:
    """From 0 to 1 where that shows the numbers, else to the largest; what is best is dark."""
    largest = float(np.nanmax(result.weights, initial=0.0))
    if result.smaller_is_better:
        return Scale(0.0, largest or 1.0, "falling", ("nearest", ""))
    return Scale(0.0, 1.0 if largest > 0.4 else largest or 1.0)


def _grid(
    result: Finding,
    title: str,
    values: np.ndarray,
    scale: Scale,
    control: Companion | None = None,
) -> HeadGrid:
    form = signed_cell if scale.kind == "signed" else weight_cell
    unit = "nats" if result.smaller_is_better else ""
    return HeadGrid(title, result.layers, result.heads, values, scale, form, unit, companion=control)


def _answer(result: Finding) -> str:
    """The best of so many heads, beside the best head of the control texts: a maximum beside a maximum."""
    controls, count = result.controls, counted(result.weights.size, "head")
    if not result.ranking:
        return f"None of {count} has a number."
    best, of = result.ranking[0], controls.of.value
    own, mean = (weight(float(each[best])) for each in (result.weights, controls.mean))
    low, high = (weight(float(each)) for each in np.quantile(controls.best, (0.05, 0.95)))
    beaten = round(result.best_percentile * controls.count / 100)
    told = f"{named(result, best)} gives the most weight of {count}, {own}, where its controls give {mean}"
    if result.smaller_is_better:
        told = f"{named(result, best)} is the nearest of {count}, {own} nats apart, its controls {mean}"
    told += (
        f"; the best head of a control {of} has {weight(float(controls.best.mean()))} ({low} to {high}), "
        f"{'farther' if result.smaller_is_better else 'less'} than that in {beaten} of {controls.count}"
    )
    if (most := result.most_above) not in (None, best):
        side = "below" if result.smaller_is_better else "above"
        own, mean = (weight(float(each[most])) for each in (result.weights, controls.mean))
        told += f"; farthest {side} its own controls is {named(result, most)}, {own} against {mean}"
    return f"{told}."


def _table(result: Finding, places: Sequence[Place]) -> Table:
    """A row for each of these heads; people see the columns that have a meaning here."""
    controls, of = result.controls, result.controls.of
    own = of.value

    def of_each(values: np.ndarray | None) -> Values:
        return [None] * len(places) if values is None else each_of(values, places)

    low, high = of_each(controls.low), of_each(controls.high)
    between = [f"{weight(a)}-{weight(b)}" for a, b in zip(low, high, strict=True)]
    accounts = [result.account(place) for place in places]
    called = {Account.PLACE: "place", Account.WORD: of.part, Account.TEXT: own, None: ""}
    single = result.sought.pattern is None
    moved = "what all pieces move together" if result.words else "what is moved"
    measured = "divergence" if result.smaller_is_better else "weight"
    # fmt: off
    return Table(
        Column("layer", [result.layers[i] for i, _ in places]),
        Column("head", [result.heads[j] for _, j in places]),
        Column("weight", of_each(result.weights), measured, partial(weight, decimals=3),
               scale=_scale(result)),
        Column("rank", of_each(result.ranks), "rank", f"{{:.{0 if single else 1}f}}".format,
               f"{'of that key' if single else 'of the strongest such key, mean,'} in its row", spared=2),
        Column("norm", of_each(result.norms)),
        Column("norm_share", of_each(result.shares), "norm", weight,
               f"share of its row by weight x ||f(x)||, {moved} (Kobayashi et al. 2020)", spared=3),
        Column("even", of_each(result.even)),
        Column("control_mean", of_each(controls.mean), "control", weight, "mean of the controls"),
        Column("control_low", low, "90 %", says="the middle nine tenths of them", told=between, spared=1),
        Column("control_high", high),
        Column("control_percentile", of_each(controls.percentile), "beats", per_hundred,
               f"how many of the controls the {own} goes beyond"),
        Column("difference", of_each(result.difference), "diff", signed, "to the mean of the controls",
               Scale.around(result.difference)),
        Column("followed", of_each(result.followed), "follows", weight, _follows(result), spared=4),
        Column("account", [called[each] for each in accounts], "by", says=_by(result)),
        Column("verdict", [result.verdicts[i][j].value for i, j in places]),
)
    # fmt: on


def _follows(result: Finding) -> str:
    if result.sought.key is None:
        return ""
    key = settled(result.key_tokens.names[result.sought.key])
    return f"what the query gives to {key} in the controls, wherever it went"


def _by(result: Finding) -> str:
    """What a head is said to look at, by what of its weight is left in the controls."""
    of = result.controls.of
    told = [f"place, where half of the weight or more stays whatever the {_PLURAL[of]}"]
    if result.followed is not None:
        own = "token" if of is Contents.TEXT else of.part
        told.append(f"{of.part}, where as much goes with the key's {own}")
    return ", ".join([*told, f"{of.value}, where it does not"])


def _ranking(result: Finding) -> Ranking:
    """The best heads as bars in the colour of what they look by, their controls across them."""
    places, controls = result.ranking[:_SHOWN], result.controls
    table, best = _table(result, places), [float(controls.best.mean())] if places else []
    ends = table["control_low"].values, table["control_high"].values
    return Ranking(
        title="best heads first",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=table,
        measured="divergence in nats" if result.smaller_is_better else "weight",
        marks=(
            *_bars(result, places, table["weight"].values),
            Mark("span", "control", "", *ends),
            Mark("ring", "control", "its controls: mean, 90 %", table["control_mean"].values),
            Mark("line", "limit", "best head of a control, mean" if best else "", best),
        ),
        axis=(0.0, 1.02) if _scale(result).high == 1.0 and not result.smaller_is_better else None,
        hidden=len(result.ranking) - len(places),
    )


def _bars(result: Finding, places: Sequence[Place], values: Sequence[float]) -> list[Mark]:
    """The number of each head, in the tint of what it looks by."""
    of, accounts = result.controls.of, [result.account(place) for place in places]
    if result.smaller_is_better:
        return [Mark("bar", "own", f"this {of.value}", values)]
    words = {"of": of.value, "part": of.part, "own": "token" if of is Contents.TEXT else of.part}
    return [
        Mark("bar", tint, label.format(**words), only(values, (each is account for each in accounts)))
        for account, (tint, label) in _BARS.items()
        if account in accounts
    ]


def _control(result: Finding) -> str:
    """What is changed in the controls, and what stays."""
    return result.controls.how


def _departures(result: Finding) -> Iterator[str]:
    """How many controls there are where these are not as many as were asked for, and their seed."""
    controls = result.controls
    if controls.count != controls.asked:
        yield f"{controls.count} of {controls.asked} controls"
    if controls.seed:
        yield f"seed {controls.seed}"


def _details(result: Finding) -> Iterator[str]:
    """The first controls themselves, and what all keys alike would have."""
    yield from (f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD]))
    if result.even is not None and not np.isnan(result.even).all():
        least, most = (weight(float(each(result.even))) for each in (np.nanmin, np.nanmax))
        yield f"even attention: {least if least == most else f'{least}-{most}'}"


def _notes(result: Finding) -> Iterator[str]:
    """What has to be known to read the numbers."""
    pattern, key, plural = result.sought.pattern, result.sought.key, _PLURAL[result.controls.of]
    if pattern is not None and pattern.of_places:
        yield f"this pattern is about positions, which stay whatever the {plural}"
    if key is not None and result.key_tokens.items[key].special:
        yield f"the key is a special token, which stays: the controls have other {plural} around it"


def _next(result: Finding) -> Next | None:
    """How to open the best head, where its query looks at its key."""
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    key = None if over else result.sought.key
    opened = opening_head(result, result.layers[i], result.heads[j], result.sought.query, key)
    return Next("what else does that head look at?", f"{opened}{looked_at(result.words, result.special)}")


def _opens(result: Finding, best: Place) -> dict[str, object]:
    return {
        "layer": result.layers[best[0]],
        "head": result.heads[best[1]],
        "query": result.sought.query,
        "key": result.sought.key,
        "words": result.words,
        "special": result.special,
    }
