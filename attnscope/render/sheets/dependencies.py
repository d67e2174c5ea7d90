"""Which head finds which relation, each beside the best fixed offset and on sentences held out."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, percent, signed, weight, weight_cell
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import grid_size, in_sample, name, proof, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.results import Dependencies
from attnscope.results.claims.relations import Direction, HeldOut, Relation, Share

LEAST = 20  # edges of a relation that is shown: of fewer the best of many heads says little
_LISTED = 10  # heads of one relation
_SHARES = Scale(0.0, 1.0)
_ARROWS = {Direction.FROM_DEPENDENT: "→", Direction.FROM_HEAD: "←"}
_DIRECTIONS = {
    Direction.FROM_DEPENDENT: "→ from the dependent: the word that it attends to most",
    Direction.FROM_HEAD: "← from the head: the word that attends to the dependent most",
}
_FACTS = "fact relation count layer head direction offset accuracy low high"
_ARROWS_MEAN = "→ the dependent attends most to its head; ← its head attends most to it"


def sheet(result: Dependencies, focus: Focus = WHOLE) -> Sheet:
    relation, bank = result.looked_at, result.treebank.name
    main = _relations(result) if relation is None else None
    one = () if relation is None else (_heads(result, relation), Beside(tuple(_grids(result, relation))))
    sample = f"{result.sampled} of {counted(result.treebank.scored, 'sentence')}"
    return Sheet(
        title=f"{result.shown} in {bank}" if result.shown else f"relations of {bank}",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result) if relation is None else _answer_of(result, relation),
        blocks=one if main is None else (main,),
        table=lambda: Table.of(_FACTS, _facts(result)),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        proof=proof(result.certified, "head", f" in {sample}; {in_sample(result.unlike)}"),
        main=main,
        whole="one relation has a panel for each direction",
        summary=(counted(len(result.relations), "relation"),),
    )


def shown_relations(result: Dependencies) -> list[Relation]:
    """All but punctuation, then those with enough edges, or all where none has, the largest gain first."""
    enough = [each for each in result.relations if each.count >= LEAST] or result.relations
    gain = sorted(enough, key=lambda each: each.baseline.accuracy - each.best.accuracy)
    return [result.overall, *gain]


def finder(relation: Relation) -> str:
    """`L2 H8 →`."""
    return f"{relation.best.name} {_ARROWS[relation.best.direction]}"


def _offset(offset: int) -> str:
    return signed(offset, 0)


def _relations(result: Dependencies) -> Ranking:
    """Best head and best offset of each relation with their intervals, and the head on sentences held out."""
    rows = shown_relations(result)
    best, fixed = [each.best for each in rows], [each.baseline for each in rows]
    held = [each.held_out for each in rows]
    rare = len(result.relations) - len(rows) + 1
    finders = [f"{finder(each)} | {_offset(each.baseline.offset)}" for each in rows]
    judged = [None if each is None else each.accuracy for each in held]
    gains = [None if each is None else each.difference for each in held]
    sure = {1: "head", -1: "offset", 0: "?"}
    # fmt: off
    table = Table(
        Column("count", [each.count for each in rows], "edges", "{:,}".format),
        Column("finders", finders, "head | offset", as_written,
               f"{_ARROWS_MEAN}; offset: the head stands so many words further on (−: before)"),
        Column("accuracy", [each.accuracy for each in best], "head", weight, scale=_SHARES),
        Column("interval", [_between(each) for each in best], "95 %", as_written,
               "by scatter over sentences", spared=2),
        Column("offset", [each.accuracy for each in fixed], "offset", weight, scale=_SHARES),
        Column("held_out", judged, "held out", weight,
               "head chosen on every other sentence, judged on the rest, both ways", _SHARES),
        Column("gain", gains, "gain", signed, "on those over the offset", Scale(-0.5, 0.5, "signed")),
        Column("reach", [_reach(each) for each in held], "95 %", as_written,
               "by scatter over sentences", spared=1),
        Column("better", [sure[each.told_apart] if each.held_out else "" for each in rows], "better",
               says="by that interval; ?: head and offset cannot be told apart"),
)
    # fmt: on
    return Ranking(
        title="largest gain over the offset first",
        of="relation",
        names=tuple(each.name for each in rows),
        table=table,
        measured="share of the edges whose head is found",
        marks=(
            Mark("span", "limit", "", [each.low for each in fixed], [each.high for each in fixed], low=True),
            Mark("diamond", "limit", "best fixed offset, 95 %", table["offset"].values, low=True),
            Mark("span", "own", "", [each.low for each in best], [each.high for each in best]),
            Mark("dot", "own", "best head, 95 %", table["accuracy"].values),
            Mark("tick", "control", "head chosen on other sentences", judged),
        ),
        axis=(0.0, 1.02),
        cells=("count", "finders"),
        says=f"and {counted(rare, 'relation')} with fewer than {LEAST} edges, in the files" if rare else "",
    )


def _between(share: Share) -> str:
    return f"{weight(share.low)}-{weight(share.high)}"


def _reach(held: HeldOut | None) -> str:
    """The interval of the gain; of sentences that do not scatter, none."""
    return "" if held is None or held.unknown else f"{signed(held.low)} to {signed(held.high)}"


def ranked_heads(result: Dependencies, relation: Relation) -> list[tuple[int, int, Direction, float]]:
    """Layer, head, direction and accuracy of every head, best first, those that are alike in their order."""
    values, ways = result.by_head(relation.name), tuple(Direction)
    order = np.argsort(-values, axis=None, kind="stable")
    places = np.array(np.unravel_index(order, values.shape)).T.tolist()
    return [(result.layers[i], result.heads[j], ways[k], float(values[i, j, k])) for i, j, k in places]


def _heads(result: Dependencies, relation: Relation) -> Ranking:
    """The heads that find one relation best, beside the best offset."""
    every, fixed = ranked_heads(result, relation), relation.baseline
    listed = every[:_LISTED]
    shares = [share for *_, share in listed]
    gains = [share - fixed.accuracy for share in shares]
    return Ranking(
        title=f"heads that find {relation.name} best",
        of="head",
        names=tuple(f"{name(layer, head)} {_ARROWS[way]}" for layer, head, way, _ in listed),
        table=Table(
            Column("accuracy", shares, "finds", weight, "share of the edges", _SHARES),
            Column("gain", gains, "gain", signed, "over the best offset", Scale(-0.5, 0.5, "signed")),
        ),
        says=_ARROWS_MEAN,
        hidden=len(every) - len(listed),
        measured="share of the edges whose head is found",
        marks=(
            Mark("bar", "own", "", shares),
            Mark("line", "limit", f"best fixed offset, {_offset(fixed.offset)}", [fixed.accuracy]),
        ),
        axis=(0.0, 1.02),
    )


def _grids(result: Dependencies, relation: Relation) -> Iterator[HeadGrid]:
    """Every head in both directions; those that are better than the best offset stand out."""
    values = result.by_head(relation.name)
    for k, told in enumerate(_DIRECTIONS.values()):
        own = values[:, :, k]
        better = frozenset((i, j) for i, j in np.argwhere(own > relation.baseline.accuracy).tolist())
        label = "better than the best fixed offset"
        yield HeadGrid(told, result.layers, result.heads, own, _SHARES, weight_cell, beyond=(label, better))


def _answer(result: Dependencies) -> str:
    """For how many relations a head is really better, by the sentences that are left out."""
    rows = shown_relations(result)[1:]
    better = sum(each.told_apart > 0 for each in rows)
    worse = [each.name for each in rows if each.told_apart < 0]
    beaten = [each.name for each in rows if each.beaten]
    told = f"On sentences held out the head is better for {better} of {counted(len(rows), 'relation')}"
    told += f", the offset for {len(worse)}" + (f" ({', '.join(worse)})" if worse else "")
    told += "; the others cannot be told apart" if better + len(worse) < len(rows) else ""
    if not beaten:
        return f"{told}. No relation shown has an offset that is as good as its best head."
    return f"{told}. An offset is as good as every head, or better: {', '.join(beaten)}."


def _answer_of(result: Dependencies, relation: Relation) -> str:
    """The best head of one relation, beside the offset and on sentences that it was not chosen on."""
    better = int((result.by_head(relation.name) > relation.baseline.accuracy).sum())
    offset = f"the best fixed offset ({_offset(relation.baseline.offset)})"
    told = (
        f"{finder(relation)} finds {weight(relation.best.accuracy)} of {relation.count:,} "
        f"{relation.name} edges in {relation.sentences:,} sentences, {offset} "
        f"{weight(relation.baseline.accuracy)}; {better} of {result.tried} are better than that"
    )
    if (held := relation.held_out) is None:
        return f"{told}."
    reach = f" ({_reach(held)})" if _reach(held) else ""
    judged = "chosen on every other sentence and judged on those between"
    return f"{told}; {judged}: {weight(held.accuracy)}, {signed(held.difference)}{reach} beside the offset."


def _notes(result: Dependencies) -> Iterator[str]:
    bank = result.treebank
    edges, heads = sum(each.count for each in result.relations), len(result.layers) * len(result.heads)
    yield (
        f"{bank.scored:,} of {bank.sentences:,} sentences, {edges:,} edges · the best of {result.tried} "
        f"({counted(heads, 'head')}, two directions)"
    )
    why = {
        "without an edge": bank.without_relation,
        f"longer than {bank.limit} tokens": bank.too_long,
        "that cannot be read": bank.unreadable,
    }
    parts = [f"{counted(count, 'sentence')} {reason}" for reason, count in why.items() if count]
    if bank.edges_without_piece:
        parts.append(f"{counted(bank.edges_without_piece, 'edge')} of words without a piece")
    if parts:
        yield f"left out: {', '.join(parts)}"
    yield from result.notes


def _legend(result: Dependencies) -> Iterator[str]:
    if not result.ahead:
        yield (
            f"no head looks ahead: → can find heads that stand before ({percent(result.overall.before)} of "
            "all), ← those behind; all edges count, and offsets look both ways"
        )


def _facts(result: Dependencies) -> Iterator[tuple[object, ...]]:
    """A summary of each relation, then every offset and every head in both directions."""
    for relation in (*result.relations, result.overall):
        yield from _summary(relation)
    for r, relation in enumerate(result.relations):
        own = relation.name, relation.count
        for o, offset in enumerate(result.tried_offsets):
            yield "offset", *own, "", "", "", offset, float(result.offsets[o, r]), "", ""
        for i, j, k in np.ndindex(result.accuracies.shape[:3]):
            head = result.layers[i], result.heads[j], tuple(Direction)[k].value
            yield "head", *own, *head, "", float(result.accuracies[i, j, k, r]), "", ""


def _summary(relation: Relation) -> Iterator[tuple[object, ...]]:
    own, best, fixed = (relation.name, relation.count), relation.best, relation.baseline
    head = best.layer, best.head, best.direction.value
    yield "best head", *own, *head, "", best.accuracy, best.low, best.high
    yield "best offset", *own, "", "", "", fixed.offset, fixed.accuracy, fixed.low, fixed.high
    if (held := relation.held_out) is not None:
        yield "head held out", *own, "", "", "", "", held.accuracy, "", ""
        yield "gain held out", *own, "", "", "", "", held.difference, held.low, held.high
