"""Which head finds which relation, each beside the best fixed distance and on sentences held out."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, signed, weight, weight_cell
from attnscope.render.kit.words.command import asking_of_file
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import grid_size, in_sample, name, proof_in, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets import dependencies_words as words
from attnscope.render.sheets.dependencies_words import BETTER, OPEN, WORSE, groups, interval
from attnscope.results import Dependencies
from attnscope.results.claims.relations import LEAST, Direction, Relation, Share

_MANY = 14  # relations that are shown; of more so many of each group
_SHOWN = {BETTER: 8, OPEN: 4, WORSE: 3}
_LISTED = 10  # heads of one relation
_SHARES = Scale(0.0, 1.0)
_ARROWS = {Direction.FROM_DEPENDENT: "→", Direction.FROM_HEAD: "←", Direction.STRONGEST: "⇐"}
_DIRECTIONS = {
    Direction.FROM_DEPENDENT: "→ from the dependent: the word that it attends to most",
    Direction.FROM_HEAD: "← from the head: the word that attends to the dependent most",
    Direction.STRONGEST: "⇐ of the head: the word that it attends to most is the dependent",
}
_FACTS = "fact relation count layer head direction fixed_distance accuracy low high"
_ARROWS_MEAN = (
    "→ the dependent attends most to its head; ← of all words its head attends most to it; "
    "⇐ its head attends to no other word more"
)


def sheet(result: Dependencies, focus: Focus = WHOLE) -> Sheet:
    relation, bank = result.looked_at, result.treebank.name
    main = _relations(result, focus.verbose) if relation is None else None
    one = () if relation is None else (_heads(result, relation), Beside(tuple(_grids(result, relation))))
    sentences = counted(result.treebank.scored, "sentence")
    return Sheet(
        title=f"{result.shown} in {bank}" if result.shown else f"relations of {bank}",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=words.answer(result) if relation is None else words.answer_of(result, relation),
        blocks=one if main is None else (main,),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control="the best fixed distance (−1: the word before); heads are chosen on every other "
        "sentence and judged on the rest",
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        details=tuple(words.details(result)),
        proof=proof_in(result.sampled, sentences, result.certified, in_sample(result.unlike)),
        main=main,
        more=tuple(_examples(result)),
        whole="one relation has a panel for each direction",
        summary=(counted(len(result.relations), "relation"),),
        next=_next(result),
    )


def finder(relation: Relation) -> str:
    """`L2 H8 →`."""
    return f"{relation.best.name} {_ARROWS[relation.best.direction]}"


def _words_on(distance: int) -> str:
    return signed(distance, 0)


def _relations(result: Dependencies, whole: bool) -> Ranking:
    """Head and fixed distance of each relation on sentences that the head was not chosen on."""
    every = groups(result)
    most = _SHOWN if not whole and len(result.judged) > _MANY else {}
    shown = {heading: there[: most.get(heading)] for heading, there in every.items()}
    rows = [each for there in shown.values() for each in there]
    sections, begins = list[tuple[int, str]](), 0
    for heading, there in shown.items():
        if there:
            sections.append((begins, heading))
            begins += len(there)
    best, fixed = [each.best for each in rows], [each.baseline for each in rows]
    held = [each.held_out for each in rows]
    judged = [None if each is None else each.accuracy for each in held]
    above = [None if each is None else each.above_control for each in held]
    # fmt: off
    table = Table(
        Column("count", [each.count for each in rows], "pairs", "{:,}".format, "of a word and its head",
               spared=3),
        Column("finder", [finder(each) for each in rows], "head", says=_ARROWS_MEAN),
        Column("held_out", judged, "finds", weight,
               "share of the pairs, the head chosen on every other sentence, judged on the rest, both ways",
               _SHARES),
        Column("fixed_distance", [each.fixed_distance for each in fixed], "fixed distance", _words_on,
               "the head stands so many words further on (−: before)"),
        Column("distance_finds", [each.accuracy for each in fixed], "finds", weight, scale=_SHARES),
        Column("above_control", above, "head minus distance", signed, scale=Scale(-0.5, 0.5, "signed")),
        Column("reach", [interval(each) for each in held], "(95 %)", as_written,
               "by scatter over sentences, of this relation alone", spared=2),
        Column("accuracy", [each.accuracy for each in best], "on all" if whole else "", weight,
               "share that the best head finds of the pairs it was chosen by, which flatters it", spared=4),
        Column("interval", [_between(each) for each in best], "95 %" if whole else "", as_written, spared=5),
)
    # fmt: on
    return Ranking(
        title="",
        of="relation",
        names=tuple(each.name for each in rows),
        table=table,
        measured="share of the pairs whose head is found",
        marks=(
            Mark("span", "limit", "", [each.low for each in fixed], [each.high for each in fixed], low=True),
            Mark("diamond", "limit", "best fixed distance, 95 %", table["distance_finds"].values, low=True),
            Mark("span", "own", "", [each.low for each in best], [each.high for each in best]),
            Mark("dot", "own", "best head on all sentences, 95 %", table["accuracy"].values),
            Mark("tick", "control", "head on sentences held out", judged),
        ),
        axis=(0.0, 1.02),
        cells=("count", "finder", "fixed_distance"),
        sections=tuple(sections),
        unshown=_unshown(result, len(rows) - 1),
        hidden=len(result.relations) + 1 - len(rows),
    )


def _unshown(result: Dependencies, shown: int) -> str:
    """How many relations have no row, and why."""
    rare, more = len(result.relations) - len(result.judged), len(result.judged) - shown
    told = [f"{counted(more, 'relation')} more (-v)"] if more else []
    if rare:
        told.append(f"{counted(rare, 'relation')} with fewer than {LEAST} pairs, in the files")
    return "; ".join(told)


def _between(share: Share) -> str:
    return f"{weight(share.low)}-{weight(share.high)}"


def ranked_heads(result: Dependencies, relation: Relation) -> list[tuple[int, int, Direction, float]]:
    """Layer, head, direction and accuracy of every head, best first, those that are alike in their order."""
    values, ways = result.by_head(relation.name), tuple(Direction)
    order = np.argsort(-values, axis=None, kind="stable")
    places = np.array(np.unravel_index(order, values.shape)).T.tolist()
    return [(result.layers[i], result.heads[j], ways[k], float(values[i, j, k])) for i, j, k in places]


def _heads(result: Dependencies, relation: Relation) -> Ranking:
    """The heads that find one relation best, beside the best fixed distance."""
    every, fixed = ranked_heads(result, relation), relation.baseline
    listed = every[:_LISTED]
    shares = [share for *_, share in listed]
    above = [share - fixed.accuracy for share in shares]
    return Ranking(
        title=f"heads that find {relation.name} best",
        of="head",
        names=tuple(f"{name(layer, head)} {_ARROWS[way]}" for layer, head, way, _ in listed),
        table=Table(
            Column("accuracy", shares, "finds", weight, "share of the pairs", _SHARES),
            Column(
                "above_control",
                above,
                "above distance",
                signed,
                "share less that of the best fixed distance",
                Scale(-0.5, 0.5, "signed"),
            ),
        ),
        says=_ARROWS_MEAN,
        hidden=len(every) - len(listed),
        measured="share of the pairs whose head is found",
        marks=(
            Mark("bar", "own", "", shares),
            Mark(
                "line", "limit", f"best fixed distance, {_words_on(fixed.fixed_distance)}", [fixed.accuracy]
            ),
        ),
        axis=(0.0, 1.02),
    )


def _grids(result: Dependencies, relation: Relation) -> Iterator[HeadGrid]:
    """Every head in both directions; those that are better than the best fixed distance stand out."""
    values = result.by_head(relation.name)
    for k, told in enumerate(_DIRECTIONS.values()):
        own = values[:, :, k]
        better = frozenset((i, j) for i, j in np.argwhere(own > relation.baseline.accuracy).tolist())
        label = "better than the best fixed distance"
        yield HeadGrid(told, result.layers, result.heads, own, _SHARES, weight_cell, beyond=(label, better))


def _examples(result: Dependencies) -> Iterator[Ranking]:
    """A pair of each relation that its head gets right, and one that it misses."""
    rows = [(each, example) for each in words.exemplified(result) for example in each.examples]
    if rows:
        examples = [example for _, example in rows]
        yield Ranking(
            title="a pair that the head gets right, and one that it misses",
            of="relation",
            names=tuple(each.name for each, _ in rows),
            table=Table(
                Column("finder", [finder(each) for each, _ in rows], "head", says=_ARROWS_MEAN),
                Column("right", ["right" if each.right else "missed" for each in examples], "pair"),
                Column(
                    "sentence", list(map(words.excerpt, examples)), "the word that is given «in its sentence»"
                ),
                Column("taken", list(map(words.taken, examples)), "takes"),
            ),
            repeats=True,
        )


def _next(result: Dependencies) -> Next | None:
    """The heads of the relation that comes first, or all relations."""
    run = "dependencies", result.provenance, result.kind, result.tower
    if result.shown:
        return Next("is that so for other relations?", asking_of_file(*run))
    if not result.judged:
        return None
    first = result.ranking[0].name
    return Next(f"which heads find {first}?", asking_of_file(*run, "--relation", word(first)))


def _facts(result: Dependencies) -> Iterator[tuple[object, ...]]:
    """A summary of each relation, then every fixed distance and every head in both directions."""
    for relation in (*result.relations, result.overall):
        yield from _summary(relation)
    for r, relation in enumerate(result.relations):
        own = relation.name, relation.count
        for d, distance in enumerate(result.fixed_distances):
            yield (
                "fixed distance",
                *own,
                "",
                "",
                "",
                distance,
                float(result.distance_accuracies[d, r]),
                "",
                "",
            )
        for i, j, k in np.ndindex(result.accuracies.shape[:3]):
            head = result.layers[i], result.heads[j], tuple(Direction)[k].value
            yield "head", *own, *head, "", float(result.accuracies[i, j, k, r]), "", ""


def _summary(relation: Relation) -> Iterator[tuple[object, ...]]:
    own, best, fixed = (relation.name, relation.count), relation.best, relation.baseline
    head = best.layer, best.head, best.direction.value
    yield "best head", *own, *head, "", best.accuracy, best.low, best.high
    yield "best fixed distance", *own, "", "", "", fixed.fixed_distance, fixed.accuracy, fixed.low, fixed.high
    if (held := relation.held_out) is not None:
        yield "head held out", *own, "", "", "", "", held.accuracy, "", ""
        yield "above control held out", *own, "", "", "", "", held.above_control, held.low, held.high
