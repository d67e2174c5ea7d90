"""Which head finds which relation, each beside the best fixed distance and on sentences held out."""

from collections.abc import Callable, Iterator

import numpy as np

from attnscope.printable import printable, word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import (
    counted,
    percent,
    signed,
    signed_cell,
    significant,
    weight,
    weight_cell,
)
from attnscope.render.kit.words.command import asking_of_file
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import grid_size, in_sample, name, proof_in, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.results import Dependencies
from attnscope.results.claims.relations import LEAST, Case, Direction, Example, HeldOut, Relation, Share

_MANY = 14  # relations that are shown; of more so many of each group
BETTER, _OPEN, _WORSE = "a head is better", "cannot tell", "the distance is better"
_SHOWN = {BETTER: 8, _OPEN: 4, _WORSE: 3}
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
_TOGETHER = "all together"
_NAMED = 2
_AROUND = 3  # words of a sentence that are shown on either side


def sheet(result: Dependencies, focus: Focus = WHOLE) -> Sheet:
    relation, bank = result.looked_at, result.treebank.name
    main = _relations(result, focus.verbose) if relation is None else None
    one = () if relation is None else (_heads(result, relation), Beside(tuple(_grids(result, relation))))
    sentences = counted(result.treebank.scored, "sentence")
    return Sheet(
        title=f"{result.shown} in {bank}" if result.shown else f"relations of {bank}",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result) if relation is None else _answer_of(result, relation),
        blocks=one if main is None else (main,),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control="the best fixed distance (−1: the word before); heads are chosen on every other "
        "sentence and judged on the rest",
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        details=tuple(_details(result)),
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
        Column("reach", [_interval(each) for each in held], "(95 %)", as_written,
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
    values = result.by_head(relation.name)
    for k, told in enumerate(_DIRECTIONS.values()):
        own = values[:, :, k]
        better = frozenset((i, j) for i, j in np.argwhere(own > relation.baseline.accuracy).tolist())
        label = "better than the best fixed distance"
        yield HeadGrid(told, result.layers, result.heads, own, _SHARES, weight_cell, beyond=(label, better))


def _examples(result: Dependencies) -> Iterator[Ranking]:
    rows = [(each, example) for each in _exemplified(result) for example in each.examples]
    if rows:
        examples = [example for _, example in rows]
        yield Ranking(
            title="a pair that the head gets right, and one that it misses",
            of="relation",
            names=tuple(each.name for each, _ in rows),
            table=Table(
                Column("finder", [finder(each) for each, _ in rows], "head", says=_ARROWS_MEAN),
                Column("right", ["right" if each.right else "missed" for each in examples], "pair"),
                Column("sentence", list(map(_excerpt, examples)), "the word that is given «in its sentence»"),
                Column("taken", list(map(_taken, examples)), "takes"),
            ),
            repeats=True,
        )


def _next(result: Dependencies) -> Next | None:
    run = "dependencies", result.provenance, result.kind, result.tower
    if result.shown:
        return Next("is that so for other relations?", asking_of_file(*run))
    if not result.judged:
        return None
    first = result.ranking[0].name
    return Next(f"which heads find {first}?", asking_of_file(*run, "--relation", word(first)))


def _facts(result: Dependencies) -> Iterator[tuple[object, ...]]:
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


def groups(result: Dependencies) -> dict[str, tuple[Relation, ...]]:
    """The relations by what can be told of them, the best evidence first; last all of them as one."""
    told = result.told_apart
    there = {
        heading: tuple(each for each in result.ranking if told[each.name] == sign)
        for sign, heading in ((1, BETTER), (0, _OPEN), (-1, _WORSE))
    }
    return there | {_TOGETHER: (result.overall,)}


def _interval(held: HeldOut | None) -> str:
    """The interval of how far it is above the distance; of sentences that do not scatter, none."""
    return "" if held is None or held.unknown else f"{signed_cell(held.low)} to {signed_cell(held.high)}"


def _answer(result: Dependencies) -> str:
    """For which relations a head is better than a fixed distance, of all that were tried at once."""
    return " ".join(each for each in (_SAID[result.case](result), _left_out(result)) if each)


def _found(result: Dependencies) -> str:
    better = groups(result)[BETTER]
    many = f"{len(better)} of {counted(len(result.judged), 'relation')}"
    named = [f"{each.name} {_numbers(each)}" for each in better[:_NAMED]]
    more = f" and {len(better) - _NAMED} more" if len(better) > _NAMED else ""
    verb = "is" if len(better) == 1 else "are"
    return f"{many} {verb} found better by a head than by a fixed distance: {'; '.join(named)}{more}."


def _numbers(relation: Relation) -> str:
    held = relation.held_out
    own = relation.best.accuracy if held is None else held.accuracy
    return f"by {relation.best.name}, {weight(own)} against {weight(relation.baseline.accuracy)}"


def _none(result: Dependencies) -> str:
    return (
        f"No head of this model finds a grammatical relation better than a fixed distance does "
        f"({counted(len(result.judged), 'relation')} tried)"
    )


def _nearest(result: Dependencies) -> str:
    first = result.ranking[0]
    held = first.held_out
    reach = f" (95 % alone: {_interval(held)})" if _interval(held) else ""
    return f"{_none(result)}: {first.name} comes nearest, {_numbers(first)}{reach}."


def _distance(result: Dependencies) -> str:
    worse = [each.name for each in groups(result)[_WORSE]]
    told = f"; the distance is better for {', '.join(worse)}" if worse else ""
    return f"{_none(result)}{told}."


def _few_pairs(result: Dependencies) -> str:
    limit = result.treebank.limit
    within = f" within {limit:,} tokens" if limit and result.treebank.too_long else ""
    return f"This treebank cannot tell: no relation has {LEAST} pairs{within}."


_SAID: dict[Case, Callable[[Dependencies], str]] = {
    Case.FOUND: _found,
    Case.NEAREST: _nearest,
    Case.DISTANCE: _distance,
    Case.FEW_PAIRS: _few_pairs,
}


def _left_out(result: Dependencies) -> str:
    bank = result.treebank
    if not bank.left_out:
        return ""
    why = {
        f"longer than {bank.limit} tokens": bank.too_long,
        "that cannot be read": bank.unreadable,
        "without a pair": bank.without_relation,
    }
    parts = ", ".join(f"{count:,} {reason}" for reason, count in why.items() if count)
    return f"{bank.left_out:,} of {counted(bank.sentences, 'sentence')} were left out: {parts}."


def _answer_of(result: Dependencies, relation: Relation) -> str:
    """The head of one relation on sentences that it was not chosen on, beside the distance."""
    fixed, held = relation.baseline, relation.held_out
    if held is None or relation.count < LEAST:
        told = (
            f"This treebank cannot tell which head finds {relation.name}: it has "
            f"{counted(relation.count, 'pair')}, and {LEAST} are needed."
        )
        return " ".join(each for each in (told, _left_out(result)) if each)
    verb = "better than" if held.low > 0 else "worse than" if held.high < 0 else "not surely better than"
    reach = f", 95 %: {_interval(held)}" if _interval(held) else ""
    told = (
        f"{relation.best.name} finds {relation.name} {verb} a fixed distance: {weight(held.accuracy)} of "
        f"{relation.count:,} pairs on sentences held out, {_further(fixed.fixed_distance)} "
        f"{weight(fixed.accuracy)} ({signed(held.above_control)}{reach})."
    )
    return " ".join(each for each in (told, _left_out(result)) if each)


def _further(distance: int) -> str:
    if abs(distance) == 1:
        return "the next word" if distance > 0 else "the word before"
    count = {2: "two", 3: "three"}.get(abs(distance), f"{abs(distance)}")
    return f"the word {count} {'on' if distance > 0 else 'back'}"


def _notes(result: Dependencies) -> Iterator[str]:
    bank = result.treebank
    pairs = sum(each.count for each in result.relations)
    yield (
        f"{bank.scored:,} of {bank.sentences:,} sentences, {pairs:,} pairs; each head is the best of "
        f"{result.tried} ({counted(len(result.layers) * len(result.heads), 'head')}, "
        f"{len(Direction)} directions)"
    )
    yield from _told_alone(result)
    if bank.pairs_without_piece:
        yield f"{counted(bank.pairs_without_piece, 'pair')} left out of words without a piece"
    yield from result.notes


def _told_alone(result: Dependencies) -> Iterator[str]:
    rows = [each for each in result.told_alone if result.shown in ("", each[0].name)]
    if rows:
        named = ", ".join(f"{each.name} (p {significant(p)})" for each, p, _ in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        yield (
            f"tried alone, {named}{more} would be told apart, as the interval shows; among "
            f"{counted(len(result.judged), 'relation')} p {significant(rows[0][2])} or less is needed "
            "(Holm 1979)"
        )


def _details(result: Dependencies) -> Iterator[str]:
    """Each relation in its errors, beside what it takes among so many; and examples."""
    for relation, p, needed in result.by_p:
        yield f"{relation.name}: p {significant(p)}, {significant(needed)} or less is needed (Holm 1979)"
    for relation in _exemplified(result):
        told = (
            f"{'finds' if each.right else 'misses'} {_excerpt(each)}: {_taken(each)}"
            for each in relation.examples
        )
        yield f"{relation.name} by {relation.best.name}: {'; '.join(told)}"


def _exemplified(result: Dependencies) -> tuple[Relation, ...]:
    """The relations that have examples: the one that is looked at, or those tried, in their order."""
    asked = result.looked_at
    return tuple(each for each in ((asked,) if asked else result.ranking) if each.examples)


def _taken(example: Example) -> str:
    """`door`, or `garden, not door` of a pair that is missed."""
    right = printable(example.words[example.sought])
    if example.right:
        return right
    told = "nothing" if example.taken < 0 else printable(example.words[example.taken])
    return f"{'another ' if told == right else ''}{told}, not {right}"


def _excerpt(example: Example) -> str:
    """The word that is given, marked, and the words that are told, with a few words around each."""
    words, told = example.words, {example.dependent, example.governor, example.taken} - {-1}
    kept = [i for i in range(len(words)) if any(abs(i - each) <= _AROUND for each in told)]
    text = "" if kept[0] == 0 else "…"
    for place, i in enumerate(kept):
        gap = " … " if place and kept[place - 1] < i - 1 else " " if place else ""
        word = printable(words[i])
        text += f"{gap}«{word}»" if i == example.asked else f"{gap}{word}"
    return f"“{text}{'' if kept[-1] == len(words) - 1 else '…'}”"


def _legend(result: Dependencies) -> Iterator[str]:
    yield (
        "a head or the distance is better: at 95 % for all relations that were tried together (Holm 1979); "
        "cannot tell: neither"
    )
    if not result.ahead:
        yield (
            f"no head looks ahead: → can find heads that stand before ({percent(result.overall.before)} of "
            "all), ← and ⇐ those behind; all pairs count, and fixed distances look both ways"
        )
