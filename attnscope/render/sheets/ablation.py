"""What a model's answer becomes without some of its heads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, largest_magnitude, short
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.command import opening_head
from attnscope.render.kit.words.header import model_words, quoted
from attnscope.render.sheet.blocks import Column, Companion, HeadGrid, Mark, Ranking, Table, Values, only
from attnscope.render.sheet.said import attention, chance, give_or_take, name, number, percent, signed
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.sheet import Sheet
from attnscope.results import Ablation, Kind
from attnscope.results.claims.ablation import Asks, Effect, Group, HeadEffect, Method
from attnscope.tokens import printable

_SHOWN, _DRAWN = 12, 8  # heads that are shown, and random ones beside them
_LONGEST = 60  # cells of an answer
_SMALL = 0.1  # nats: smaller differences need more decimals
_DONE = {
    Method.ZERO: "taken away",
    Method.MEAN: "replaced by their means",
    Method.TEXT: "patched from the other text",
    Method.EDGE: "without one edge",
}
_WITHOUT = {
    Method.ZERO: "Without {}",
    Method.MEAN: "With {} replaced by its mean",
    Method.TEXT: "With {} patched from the other text",
    Method.EDGE: "With one edge of {} cut",
}
_FORETOLD = {
    "patching": "attribution patching",
    "importance": "importance with its sign, Michel et al. 2019",
    "attention-gradient": "weight x gradient that is gone",
    "logit": "what is gone straight from the answer's logit, in logits",
}


class Row(NamedTuple):
    """What was taken away, why it is in the table, what it did, beside what, and what was foretold of it."""

    name: str
    kind: Literal["", "group", "random", "foretold"]
    head: tuple[int, int] | tuple[None, None] = (None, None)
    effect: Effect | None = None
    beside: HeadEffect | Group | None = None
    estimate: float | None = None


def sheet(found: Ablation, focus: Focus = WHOLE) -> Sheet:
    ranking, answer = _ranking(found), answer_words(found)
    most = name(found.heads[0].layer, found.heads[0].head) if found.heads else ""
    edge = found.edge or (None, None)
    return Sheet(
        title=f"{_done(found)} · answer {answer}",
        setting=f"{attention(found.kind, found.tower)} · {model_words(found.provenance)}",
        origins=(found.provenance,),
        answer=_answer(found),
        blocks=(ranking, *_grid(found)),
        table=lambda: _table(found, list(_every(found))),
        texts=tuple(_texts(found)),
        notes=tuple(each for each in (found.how, *_notes(found), *found.notes) if each),
        proof=((found.verdict, _proof(found)),),
        main=ranking,
        summary=(f"most {most}" if most else "",),
        record=(
            ("kind", found.kind.value),
            ("tower", found.tower),
            ("method", found.method.value),
        ),
        next=f"Open it: {opening_head(found, *_most(found), *edge)}" if most else "",
        opens={"layer": _most(found)[0], "head": _most(found)[1]} if most else {},
    )


def _most(found: Ablation) -> tuple[int, int]:
    """The head that mattered most."""
    return found.heads[0].layer, found.heads[0].head


def _head(one: HeadEffect, kind: Literal["", "random"] = "") -> Row:
    named = f"{name(one.layer, one.head)}{' random' if kind else ''}"
    return Row(named, kind, (one.layer, one.head), one, one, one.estimate)


def _group_row(found: Ablation) -> list[Row]:
    """All heads at once, where they were."""
    group = found.group
    return [] if group is None else [Row(_at_once(group), "group", effect=group.effect, beside=group)]


def _every(found: Ablation) -> Iterator[Row]:
    """Each head by its rank, those drawn at random, all at once, those that were only foretold."""
    yield from map(_head, found.heads)
    yield from (_head(one, "random") for one in found.floor.random)
    yield from _group_row(found)
    ran = {(one.layer, one.head) for one in found.heads}
    for each in found.estimates:
        if (head := (each.layer, each.head)) not in ran:
            yield Row(name(*head), "foretold", head, estimate=each.difference)


def _ranking(found: Ablation) -> Ranking:
    """A bar for each head, to the left where the answer loses; behind it what other heads of its layer do."""
    drawn = sorted(found.floor.random, key=lambda one: -abs(one.difference))[:_DRAWN]
    rows = [*_group_row(found), *map(_head, found.heads[:_SHOWN]), *(_head(one, "random") for one in drawn)]
    table = _table(found, rows)
    values, others = table["difference"].values, table["others_median"].values
    asked = [row.kind != "random" for row in rows]
    loses = [own and value < 0 for own, value in zip(asked, values, strict=True)]
    gains = [own and value >= 0 for own, value in zip(asked, values, strict=True)]
    rounding = found.floor.rounding
    marks = (
        Mark("band", "floor", "others of its layer: median", others, [each and -each for each in others]),
        Mark("bar", "loses", "the answer loses", only(values, loses)),
        Mark("bar", "gains", "the answer gains", only(values, gains)),
        Mark("bar", "faint", "random heads of these layers", only(values, (not own for own in asked))),
        Mark("diamond", "control", "estimate", table["estimate"].values),
        Mark("line", "noise", f"rounding: ±{short(rounding)}", [-rounding, rounding]),
    )
    return Ranking(
        title="what the answer loses and gains",
        of="head",
        names=tuple(row.name for row in rows),
        table=table,
        measured="difference of log probability, nats",
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="difference",
        faint=frozenset(i for i, own in enumerate(asked) if not own),
        hidden=len(found.heads) - min(len(found.heads), _SHOWN),
    )


def _change(row: Row) -> float:
    return 0.0 if row.effect is None else row.effect.difference


def _decimals(found: Ablation) -> int:
    """So many that the largest difference has two digits that say something."""
    extent = max((abs(each.difference) for each in found.heads), default=0.0)
    return 3 if extent >= _SMALL else 4 if extent >= _SMALL / 10 else 5


def _table(found: Ablation, rows: Sequence[Row]) -> Table:
    places = _decimals(found)
    digits, change = partial(number, decimals=places), partial(signed, decimals=places)
    shares = [None if row.effect is None else _share(found, row.effect) for row in rows]
    beside = [row.beside if row.beside and row.beside.others else None for row in rows]
    asked = found.answer.asks is Asks.WRITTEN
    whole = "probability of the whole text" if asked else "probability of the answer"
    others = [None if each is None else each.chance for each in beside]
    sizes = ["-" if each is None else give_or_take(each, places) for each in others]
    less = ["-" if each is None else f"{each.beaten} of {each.others}" for each in beside]

    def of_each(field: str) -> Values:
        return [getattr(row.effect, field, None) for row in rows]

    # fmt: off
    return Table(
        Column("layer", [row.head[0] for row in rows]),
        Column("head", [row.head[1] for row in rows]),
        Column("before", of_each("before"), "before", chance, whole, spared=3),
        Column("after", of_each("after"), "after", chance, whole, spared=1),
        Column("difference", of_each("difference"), "difference", change, "of its logarithm, in nats",
               Scale.around([_change(row) for row in rows])),
        Column("kl", of_each("kl"), "KL", digits, "how far all possible answers moved, in nats", spared=2),
        Column("others_median", others, "others",
               says="median size of what other heads do alone",
               told=sizes),
        Column("beaten", [each and each.beaten for each in beside], "do less", told=less,
               says="how many of them do less"),
        Column("others", [each and each.others for each in beside]),
        Column("estimate", [row.estimate for row in rows], "estimate", change, _by(found)),
        Column("drawn", ["" if row.kind == "foretold" else row.kind for row in rows]),
        Column("share", shares, "of the way", percent, "part of what the whole other text makes"),
)
    # fmt: on


def _by(found: Ablation) -> str:
    """What an estimate is."""
    told = f"what one backward pass foretells ({_FORETOLD.get(found.foretold_by, found.foretold_by)})"
    if found.method is Method.ZERO and found.foretold_by == "patching":
        told += ", of zeros the head's importance (Michel et al. 2019) with its sign"
    return told


def _grid(found: Ablation) -> Iterator[HeadGrid]:
    """Layers by heads, where heads of several layers were taken away in turn, or foretold of all."""
    if found.estimates:
        yield _estimates(found)
    if len(found.layers) < 2 or len(found.heads) < 2 or found.estimates:
        return
    small = 0 < largest_magnitude(found.grid) < _SMALL
    form, size = (_thousandths(signed), _thousandths(give_or_take)) if small else (signed, give_or_take)
    others = np.full(found.grid.shape, np.nan)
    for each in found.heads:
        if each.chance is not None:
            others[found.layers.index(each.layer), each.head] = each.chance
    yield HeadGrid(
        title="difference by layer and head",
        layers=found.layers,
        heads=tuple(range(found.grid.shape[1])),
        values=found.grid,
        scale=Scale.around(found.grid),
        form=form,
        unit="in thousandths" if small else "",
        companion=Companion.numbers("median size of other heads of the layer", others, size),
    )


def _thousandths(write: Callable[[float, int], str]) -> Callable[[float], str]:
    return lambda value: write(1000 * value, 1)


def _estimates(found: Ablation) -> HeadGrid:
    layers = tuple(sorted({each.layer for each in found.estimates}))
    heads = tuple(range(1 + max(each.head for each in found.estimates)))
    values = np.full((len(layers), len(heads)), np.nan)
    for each in found.estimates:
        values[layers.index(each.layer), each.head] = each.difference
    form = partial(signed, decimals=_decimals(found) - 1)
    return HeadGrid(
        "difference foretold by the gradient", layers, heads, values, Scale.around(values), form, "nats"
    )


def _answer(found: Ablation) -> str:
    """What was done, what became of the answer, and beside what."""
    told = []
    if found.heads:
        most = found.heads[0]
        change = signed(most.difference, max(_decimals(found) - 1, 2))
        told.append(
            f"{_WITHOUT[found.method].format(name(most.layer, most.head))} the probability of "
            f"{answer_words(found)} goes from {chance(most.before)} to {chance(most.after)} ({change} nats)"
        )
        if most.others and most.chance is not None:
            others = give_or_take(most.chance, _decimals(found))
            told.append(
                f"other heads of its layer make {others}, {most.beaten} of {most.others} less than it"
            )
    if found.group is not None:
        told.append(_group(found.group))
    if found.total is not None and found.other is not None:
        told.append(_total(found, found.total))
    return f"{'; '.join(told)}." if told else ""


def _group(group: Group) -> str:
    effect = group.effect
    goes = f"{chance(effect.before)} to {chance(effect.after)}"
    told = f"with {_at_once(group)} it goes from {goes} ({signed(effect.difference)} nats"
    told += f", KL {number(effect.kl, 3)})"
    if group.chance is None:
        return f"{told}, and there is no other group of as many heads to hold it against"
    of = f"{counted(group.others, 'other group')} of as many heads in the same layers"
    if group.of_layers:
        several = len({layer for layer, _ in group.heads}) > 1
        whole = f"{counted(group.others, 'other layer')}, each whole,"
        of = f"{counted(group.others, 'group')} of as many other whole layers" if several else whole
    return f"{told}, where {of} make {give_or_take(group.chance, 3)}, {group.beaten} of them less"


def _total(found: Ablation, total: Effect) -> str:
    """How probable the answer is in the other text."""
    told = f"in the other text it is {chance(total.after)} ({signed(total.difference)} nats)"
    share = _share(found, found.heads[0]) if found.heads else None
    if share is None:
        return f"{told}, too little to speak of shares" if found.heads else told
    return f"{told}, and {name(*_most(found))} alone makes {percent(share)} of it"


def _notes(found: Ablation) -> Iterator[str]:
    """What the heads are held against, what rounding does, how far what was foretold is right."""
    floor = found.floor
    if floor.random:
        count = counted(len(floor.random), "head")
        drawn = f"{count} of the same layers that are not in the list, drawn with seed {floor.seed}"
        yield f"others: {drawn}, each alone"
    elif any(each.others for each in found.heads):
        yield "others: all other heads of the same layer, each alone"
    else:
        yield "others: the layer has no other head that this one could be held against"
    batches = "1 batch" if floor.runs == 1 else f"{floor.runs} batches"
    alike = f"in {batches} of other size, or " if floor.runs else ""
    moves = f"at most {short(floor.rounding)}" if floor.rounding else "nothing at all"
    yield f"rounding: {alike}with every output of a layer moved by its precision, the answer moves by {moves}"
    if found.estimates and found.rank_correlation is None:
        yield "estimates: too few heads to compare their order with what happened"
    elif found.estimates and found.rank_correlation is not None:
        rho = number(found.rank_correlation)
        of = f"over these {len(found.heads)} heads"
        yield f"estimates: rank correlation with what happened, {of}: {rho}"


def _proof(found: Ablation) -> str:
    """What was read back of what was done."""
    done, told = found.intervention, f"{GLYPHS[found.verdict]} {found.verdict.value}: "
    count = done.read_back + done.lost + done.unseen
    if done.lost:
        lost = f"{done.lost} of {count} changed attentions"
        return f"{told}{lost} did not come as asked for to the next operation"
    if done.unseen:
        return (
            f"{told}of {count} changed attentions {done.unseen} cannot be read back, since the model makes "
            "something else of its heads' outputs first"
        )
    if not done.faithful:
        return f"{told}watching alone changed the answer's scores"
    how = "within rounding" if found.method is Method.EDGE else "bit for bit"
    return f"{told}{count} of {count} changed attentions read back at the next operation, {how}"


def _done(found: Ablation) -> str:
    """`48 heads taken away in turn`."""
    count = counted(len(found.heads), "head")
    if found.estimates:
        count = f"the first {len(found.heads)} of {counted(len(found.estimates), 'head')}"
    return f"{count} {_DONE[found.method]}{' in turn' if len(found.heads) > 1 else ''}"


def answer_words(found: Ablation) -> str:
    """`“door” at 5 [MASK]`: what the answer is and where it stands."""
    answer = found.answer
    told = f"“{settled(fit(printable(answer.text), _LONGEST))}”"
    if answer.position is None:
        named = {Asks.WRITTEN: f"the text {told}", Asks.CLASS: f"the class {told}"}
        return named.get(answer.asks, f"the second text {answer.text}")
    where = settled(found.tokens.named(answer.position))
    return f"{told} {'after' if answer.asks is Asks.NEXT else 'at'} {where}"


def _texts(found: Ablation) -> Iterator[str]:
    """What was read, by the decoder too, and the text that outputs were taken from."""
    both = found.kind is not Kind.ENCODER and found.target is not None
    first = "reads   " if both else "A " if found.other is not None else ""
    sides = (first, found.tokens), ("decoder ", found.target if both else None), ("B ", found.other)
    yield from (
        f"{side}{quoted(tokens).plain}" for side, tokens in sides if tokens is not None and tokens.texts
    )


def _at_once(group: Group) -> str:
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def _share(found: Ablation, one: Effect) -> float | None:
    """Which part of the way to the other text one effect goes; None where there is no way to speak of."""
    if found.total is None or abs(found.total.difference) < 10 * max(found.floor.rounding, 1e-6):
        return None
    return one.difference / found.total.difference
