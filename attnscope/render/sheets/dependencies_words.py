"""The sentences of the relations of a treebank: the answer by the case that it is, and what limits it."""

from collections.abc import Callable, Iterator

from attnscope.printable import printable
from attnscope.render.kit.numbers import (
    counted,
    percent,
    signed,
    signed_cell,
    significant,
    weight,
)
from attnscope.results import Dependencies
from attnscope.results.claims.relations import LEAST, Case, Direction, Example, HeldOut, Relation

BETTER, OPEN, WORSE = "a head is better", "cannot tell", "the distance is better"
TOGETHER = "all together"
_NAMED = 2
_AROUND = 3  # words of a sentence that are shown on either side


def groups(result: Dependencies) -> dict[str, tuple[Relation, ...]]:
    """The relations by what can be told of them, the best evidence first; last all of them as one."""
    told = result.told_apart
    there = {
        heading: tuple(each for each in result.ranking if told[each.name] == sign)
        for sign, heading in ((1, BETTER), (0, OPEN), (-1, WORSE))
    }
    return there | {TOGETHER: (result.overall,)}


def interval(held: HeldOut | None) -> str:
    """The interval of how far it is above the distance; of sentences that do not scatter, none."""
    return "" if held is None or held.unknown else f"{signed_cell(held.low)} to {signed_cell(held.high)}"


def answer(result: Dependencies) -> str:
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
    """`by L2 H11, .60 against .40`: a head on sentences held out, beside the distance."""
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
    reach = f" (95 % alone: {interval(held)})" if interval(held) else ""
    return f"{_none(result)}: {first.name} comes nearest, {_numbers(first)}{reach}."


def _distance(result: Dependencies) -> str:
    worse = [each.name for each in groups(result)[WORSE]]
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
    """How many sentences were left out, where any was, and why."""
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


def answer_of(result: Dependencies, relation: Relation) -> str:
    """The head of one relation on sentences that it was not chosen on, beside the distance."""
    fixed, held = relation.baseline, relation.held_out
    if held is None or relation.count < LEAST:
        told = (
            f"This treebank cannot tell which head finds {relation.name}: it has "
            f"{counted(relation.count, 'pair')}, and {LEAST} are needed."
        )
        return " ".join(each for each in (told, _left_out(result)) if each)
    verb = "better than" if held.low > 0 else "worse than" if held.high < 0 else "not surely better than"
    reach = f", 95 %: {interval(held)}" if interval(held) else ""
    told = (
        f"{relation.best.name} finds {relation.name} {verb} a fixed distance: {weight(held.accuracy)} of "
        f"{relation.count:,} pairs on sentences held out, {_further(fixed.fixed_distance)} "
        f"{weight(fixed.accuracy)} ({signed(held.above_control)}{reach})."
    )
    return " ".join(each for each in (told, _left_out(result)) if each)


def _further(distance: int) -> str:
    """`the next word`, `the word before`, `the word two on`, `the word three back`."""
    if abs(distance) == 1:
        return "the next word" if distance > 0 else "the word before"
    count = {2: "two", 3: "three"}.get(abs(distance), f"{abs(distance)}")
    return f"the word {count} {'on' if distance > 0 else 'back'}"


def notes(result: Dependencies) -> Iterator[str]:
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
    """Why there are relations of which nothing can be told, though their interval leaves out 0."""
    rows = [each for each in result.told_alone if result.shown in ("", each[0].name)]
    if rows:
        named = ", ".join(f"{each.name} (p {significant(p)})" for each, p, _ in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        yield (
            f"tried alone, {named}{more} would be told apart, as the interval shows; among "
            f"{counted(len(result.judged), 'relation')} p {significant(rows[0][2])} or less is needed "
            "(Holm 1979)"
        )


def details(result: Dependencies) -> Iterator[str]:
    """Each relation in its errors, beside what it takes among so many; and examples."""
    for relation, p, needed in result.by_p:
        yield f"{relation.name}: p {significant(p)}, {significant(needed)} or less is needed (Holm 1979)"
    for relation in exemplified(result):
        told = (
            f"{'finds' if each.right else 'misses'} {excerpt(each)}: {taken(each)}"
            for each in relation.examples
        )
        yield f"{relation.name} by {relation.best.name}: {'; '.join(told)}"


def exemplified(result: Dependencies) -> tuple[Relation, ...]:
    """The relations that have examples: the one that is looked at, or those tried, in their order."""
    asked = result.looked_at
    return tuple(each for each in ((asked,) if asked else result.ranking) if each.examples)


def taken(example: Example) -> str:
    """`door`, or `garden, not door` of a pair that is missed."""
    right = printable(example.words[example.sought])
    if example.right:
        return right
    told = "nothing" if example.taken < 0 else printable(example.words[example.taken])
    return f"{'another ' if told == right else ''}{told}, not {right}"


def excerpt(example: Example) -> str:
    """The word that is given, marked, and the words that are told, with a few words around each."""
    words, told = example.words, {example.dependent, example.governor, example.taken} - {-1}
    kept = [i for i in range(len(words)) if any(abs(i - each) <= _AROUND for each in told)]
    text = "" if kept[0] == 0 else "…"
    for place, i in enumerate(kept):
        gap = " … " if place and kept[place - 1] < i - 1 else " " if place else ""
        word = printable(words[i])
        text += f"{gap}«{word}»" if i == example.asked else f"{gap}{word}"
    return f"“{text}{'' if kept[-1] == len(words) - 1 else '…'}”"


def legend(result: Dependencies) -> Iterator[str]:
    yield (
        "a head or the distance is better: at 95 % for all relations that were tried together (Holm 1979); "
        "cannot tell: neither"
    )
    if not result.ahead:
        yield (
            f"no head looks ahead: → can find heads that stand before ({percent(result.overall.before)} of "
            "all), ← and ⇐ those behind; all pairs count, and fixed distances look both ways"
        )
