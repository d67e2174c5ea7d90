"""Sheet of `dependencies`: best head of each relation, beside the best fixed distance and held-out tests."""

from collections.abc import Iterator

import numpy as np

from attnscope.printable import printable, word
from attnscope.render.kit.command import asking
from attnscope.render.kit.numbers import counted, signed, signed_cell, significant, weight, weight_cell
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import grid_size, in_sample, name, proof_in, setting
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.verbs.dependencies.result import LEAST, Dependencies, Direction, Example, HeldOut, Relation

_MANY = 14  # most relations shown in full; beyond that `_SHOWN` of each group
BETTER, _OPEN, _WORSE, _TOGETHER = "a_head_is_better", "open", "distance_is_better", "together"
_SHOWN = {BETTER: 8, _OPEN: 4, _WORSE: 3}
_LISTED = 10  # most heads listed for one relation
_SHARES = Scale(0.0, 1.0)
_ARROWS = {Direction.FROM_DEPENDENT: "→", Direction.FROM_HEAD: "←", Direction.STRONGEST: "⇐"}
_DIRECTIONS = {
    Direction.FROM_DEPENDENT: "from_dependent",
    Direction.FROM_HEAD: "from_head",
    Direction.STRONGEST: "strongest",
}
_FACTS = "fact relation count layer head direction fixed_distance accuracy low high"
_NAMED = 2
_AROUND = 3  # words shown on either side of a pair


def sheet(result: Dependencies, focus: Focus = WHOLE) -> Sheet:
    relation, say = result.looked_at, said(result)
    main = _relations(result, say, focus.verbose) if relation is None else None
    one = (
        ()
        if relation is None
        else (_heads(result, say, relation), Beside(tuple(_grids(result, say, relation))))
    )
    sentences = counted(result.treebank.scored, "sentence")
    return saying(
        say,
        setting=setting(result, grid_size(result.layers, result.heads)),
        blocks=one if main is None else (main,),
        table=lambda: Table.of(_FACTS, _records(result)),
        details=tuple(_details(result, say)),
        proof=proof_in(result.sampled, sentences, result.certified, in_sample(result.unlike)),
        main=main,
        more=tuple(_examples(result, say)),
        whole=say("one_panel_each"),
        summary=(counted(len(result.relations), "relation"),),
        next=_next(result, say),
    )


def said(result: Dependencies) -> Said:
    """Sentences of `dependencies` about this result, and the facts they use."""
    bank, there = result.treebank, groups(result)
    first = result.looked_at or next(iter(result.ranking), result.overall)
    held, fixed = first.held_out, first.baseline
    alone = [each for each in result.told_alone if result.shown in ("", each[0].name)]
    facts = {
        "shown": bool(result.shown),
        # the chosen relation, or the first of the ranking
        "first": first.name,
        "count": first.count,
        "best": first.best.name,
        "own": first.best.accuracy if held is None else held.accuracy,
        "fixed": fixed.accuracy,
        "by": fixed.fixed_distance,
        "gain": held and held.above_control,
        "interval": _interval(held),
        # all relations
        "judged": len(result.judged),
        "better": len(there[BETTER]),
        "worse": [each.name for each in there[_WORSE]],
        "least": LEAST,
        "found_alone": [f"{each.name} (p {significant(p)})" for each, p, _ in alone[:_NAMED]],
        "found_more": max(0, len(alone) - _NAMED),
        "needed": alone[0][2] if alone else None,
        # size of the test
        "heads": len(result.layers) * len(result.heads),
        "directions": len(Direction),
        "scored": f"{bank.scored:,}",
        "pairs": f"{sum(each.count for each in result.relations):,}",
    }
    return Said("dependencies", result, facts)


def finder(relation: Relation) -> str:
    """Name of the best head with the arrow of its direction: `L2 H8 →`."""
    return f"{relation.best.name} {_ARROWS[relation.best.direction]}"


def _words_on(distance: int) -> str:
    return signed(distance, 0)


def _relations(result: Dependencies, say: Said, whole: bool) -> Ranking:
    every = groups(result)
    most = _SHOWN if not whole and len(result.judged) > _MANY else {}
    shown = {heading: there[: most.get(heading)] for heading, there in every.items()}
    rows = [each for there in shown.values() for each in there]
    sections, begins = list[tuple[int, str]](), 0
    for heading, there in shown.items():
        if there:
            sections.append((begins, say(heading)))
            begins += len(there)
    best, fixed = [each.best for each in rows], [each.baseline for each in rows]
    held = [each.held_out for each in rows]
    judged = [None if each is None else each.accuracy for each in held]
    above = [None if each is None else each.above_control for each in held]
    rare = len(result.relations) - len(result.judged)
    # fmt: off
    table = Table(
        Column("count", [each.count for each in rows], "pairs", "{:,}".format, say("pairs_says"), spared=3),
        Column("finder", [finder(each) for each in rows], "head", says=say("arrows")),
        Column("held_out", judged, "finds", weight,
               say("finds_says"),
               _SHARES),
        Column("fixed_distance", [each.fixed_distance for each in fixed], "fixed distance", _words_on,
               say("distance_says")),
        Column("distance_finds", [each.accuracy for each in fixed], "finds", weight, scale=_SHARES),
        Column("above_control", above, "head minus distance", signed, scale=Scale(-0.5, 0.5, "signed")),
        Column("reach", [_interval(each) for each in held], "(95 %)", as_written,
               say("interval_says"), spared=2),
        Column("accuracy", [each.accuracy for each in best], "on all" if whole else "", weight,
               say("on_all_says"), spared=4),
        Column("interval", [f"{weight(each.low)}-{weight(each.high)}" for each in best],
               "95 %" if whole else "", as_written, spared=5),
)
    # fmt: on
    return Ranking(
        title="",
        of="relation",
        names=tuple(each.name for each in rows),
        table=table,
        measured=say("measured"),
        marks=(
            Mark("span", "limit", "", [each.low for each in fixed], [each.high for each in fixed], low=True),
            Mark("diamond", "limit", say("best_distance"), table["distance_finds"].values, low=True),
            Mark("span", "own", "", [each.low for each in best], [each.high for each in best]),
            Mark("dot", "own", say("best_head"), table["accuracy"].values),
            Mark("tick", "control", say("head_held_out"), judged),
        ),
        axis=(0.0, 1.02),
        cells=("count", "finder", "fixed_distance"),
        sections=tuple(sections),
        unshown="; ".join(say.lines("hidden", len(result.judged) + 1 - len(rows), rare)),
        hidden=len(result.relations) + 1 - len(rows),
    )


def ranked_heads(result: Dependencies, relation: Relation) -> list[tuple[int, int, Direction, float]]:
    """Layer, head, direction and accuracy of every head, by accuracy; ties keep their order."""
    values, ways = result.by_head(relation.name), tuple(Direction)
    order = np.argsort(-values, axis=None, kind="stable")
    places = np.array(np.unravel_index(order, values.shape)).T.tolist()
    return [(result.layers[i], result.heads[j], ways[k], float(values[i, j, k])) for i, j, k in places]


def _heads(result: Dependencies, say: Said, relation: Relation) -> Ranking:
    every, fixed = ranked_heads(result, relation), relation.baseline
    listed = every[:_LISTED]
    shares = [share for *_, share in listed]
    above = [share - fixed.accuracy for share in shares]
    return Ranking(
        title=say("heads_title"),
        of="head",
        names=tuple(f"{name(layer, head)} {_ARROWS[way]}" for layer, head, way, _ in listed),
        table=Table(
            Column("accuracy", shares, "finds", weight, say("share_says"), _SHARES),
            Column(
                "above_control",
                above,
                "above distance",
                signed,
                say("above_says"),
                Scale(-0.5, 0.5, "signed"),
            ),
        ),
        says=say("arrows"),
        hidden=len(every) - len(listed),
        measured=say("measured"),
        marks=(
            Mark("bar", "own", "", shares),
            Mark("line", "limit", say("at_distance", _words_on(fixed.fixed_distance)), [fixed.accuracy]),
        ),
        axis=(0.0, 1.02),
    )


def _grids(result: Dependencies, say: Said, relation: Relation) -> Iterator[HeadGrid]:
    values = result.by_head(relation.name)
    for k, told in enumerate(_DIRECTIONS.values()):
        own = values[:, :, k]
        better = frozenset((i, j) for i, j in np.argwhere(own > relation.baseline.accuracy).tolist())
        label = say("beyond_distance")
        yield HeadGrid(
            say(told), result.layers, result.heads, own, _SHARES, weight_cell, beyond=(label, better)
        )


def _examples(result: Dependencies, say: Said) -> Iterator[Ranking]:
    rows = [(each, example) for each in _exemplified(result) for example in each.examples]
    if rows:
        examples = [example for _, example in rows]
        yield Ranking(
            title=say("examples_title"),
            of="relation",
            names=tuple(each.name for each, _ in rows),
            table=Table(
                Column("finder", [finder(each) for each, _ in rows], "head", says=say("arrows")),
                Column("right", [say("right", each.right) for each in examples], "pair"),
                Column("sentence", list(map(_excerpt, examples)), say("sentence_says")),
                Column("taken", [_taken(each, say) for each in examples], "takes"),
            ),
            repeats=True,
        )


def _next(result: Dependencies, say: Said) -> Next | None:
    run = result, "dependencies"
    if result.shown:
        return Next(say("others"), asking(*run))
    if not result.judged:
        return None
    return Next(say("which_heads"), asking(*run, "--relation", word(result.ranking[0].name)))


def _records(result: Dependencies) -> Iterator[tuple[object, ...]]:
    for relation in (*result.relations, result.overall):
        own, best, fixed = (relation.name, relation.count), relation.best, relation.baseline
        place, share = (best.layer, best.head, best.direction.value), fixed.accuracy
        yield "best head", *own, *place, "", best.accuracy, best.low, best.high
        yield "best fixed distance", *own, "", "", "", fixed.fixed_distance, share, fixed.low, fixed.high
        if (held := relation.held_out) is not None:
            yield "head held out", *own, "", "", "", "", held.accuracy, "", ""
            yield "above control held out", *own, "", "", "", "", held.above_control, held.low, held.high
    for r, relation in enumerate(result.relations):
        own = relation.name, relation.count
        for d, distance in enumerate(result.fixed_distances):
            share = float(result.distance_accuracies[d, r])
            yield "fixed distance", *own, "", "", "", distance, share, "", ""
        for i, j, k in np.ndindex(result.accuracies.shape[:3]):
            head = result.layers[i], result.heads[j], tuple(Direction)[k].value
            yield "head", *own, *head, "", float(result.accuracies[i, j, k, r]), "", ""


def groups(result: Dependencies) -> dict[str, tuple[Relation, ...]]:
    """Relations grouped by held-out result: head better, open, distance better, all together."""
    told = result.told_apart
    there = {
        heading: tuple(each for each in result.ranking if told[each.name] == sign)
        for sign, heading in ((1, BETTER), (0, _OPEN), (-1, _WORSE))
    }
    return there | {_TOGETHER: (result.overall,)}


def _interval(held: HeldOut | None) -> str:
    """Text of the 95 % interval of the gain over the distance; empty where it is unknown."""
    return "" if held is None or held.unknown else f"{signed_cell(held.low)} to {signed_cell(held.high)}"


def _details(result: Dependencies, say: Said) -> Iterator[str]:
    """Detail lines: p of each relation beside the p it needs, and example sentences."""
    for relation, p, needed in result.by_p:
        yield say("needs", relation.name, p, needed)
    for relation in _exemplified(result):
        told = [say("example", each.right, _excerpt(each), _taken(each, say)) for each in relation.examples]
        yield say("examples", relation.name, relation.best.name, told)


def _exemplified(result: Dependencies) -> tuple[Relation, ...]:
    """Relations with examples: the chosen one, or all in the order of the ranking."""
    asked = result.looked_at
    return tuple(each for each in ((asked,) if asked else result.ranking) if each.examples)


def _taken(example: Example, say: Said) -> str:
    """Words of a pair: the right one, or for a miss the right one and the one that the head picked."""
    right = printable(example.words[example.sought])
    if example.right:
        return right
    return say("taken", right, "" if example.taken < 0 else printable(example.words[example.taken]))


def _excerpt(example: Example) -> str:
    """Excerpt of the sentence around the pair, the given word in « »."""
    words, told = example.words, {example.dependent, example.governor, example.taken} - {-1}
    kept = [i for i in range(len(words)) if any(abs(i - each) <= _AROUND for each in told)]
    text = "" if kept[0] == 0 else "…"
    for place, i in enumerate(kept):
        gap = " … " if place and kept[place - 1] < i - 1 else " " if place else ""
        word = printable(words[i])
        text += f"{gap}«{word}»" if i == example.asked else f"{gap}{word}"
    return f"“{text}{'' if kept[-1] == len(words) - 1 else '…'}”"
