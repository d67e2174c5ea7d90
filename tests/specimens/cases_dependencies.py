"""A result for every case and every optional part of what `dependencies` says."""

from collections.abc import Callable
from dataclasses import replace

import made_results
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.results import Dependencies, Kind, Verdict
from attnscope.results.claims.ranking import Z
from attnscope.verbs.dependencies import sheet
from attnscope.verbs.dependencies.relations import FIXED_DISTANCES, Tally, ranked, shares
from attnscope.verbs.dependencies.result import Case, Example, Treebank

LAYERS, HEADS, NAMES = (0, 1, 3), (0, 2, 3, 5), ("det", "nsubj", "punct", "vocative")


def sentences(count: int = 60, seed: int = 0) -> list[list[tuple[int, int, str]]]:
    """Dependent, head and relation of the words of sentences of 2 to 9 words; the last name is rare."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        words = int(random.integers(2, 10))
        heads = [(i + int(random.integers(1, words))) % words for i in range(words - 1)]
        names = random.choice(NAMES, size=words - 1, p=(0.5, 0.3, 0.19, 0.01))
        made.append([(i, head, str(name)) for i, (head, name) in enumerate(zip(heads, names, strict=True))])
    return made


def answered(edges: list[tuple[int, int, str]], random: np.random.Generator) -> np.ndarray:
    """`layer head direction word`: any word, but one head is right two times in three."""
    words = max(max(dependent, head) for dependent, head, _ in edges) + 1
    found = random.integers(-1, words, size=(len(LAYERS), len(HEADS), 2, words))
    for dependent, head, _ in edges:
        if random.random() < 2 / 3:
            found[1, 2, 0, dependent] = head
    return found


def tally(count: int = 60) -> tuple[Tally, list[tuple[list[tuple[int, int, str]], np.ndarray]]]:
    """The counts, and what was counted."""
    random = np.random.default_rng(1)
    counted = Tally(len(LAYERS), len(HEADS), NAMES)
    given = [(edges, answered(edges, random)) for edges in sentences(count)]
    for number, (edges, found) in enumerate(given):
        counted.add(number, edges, found)
    return counted, given


def dependencies(shown: str = "", *, ahead: bool = True) -> Dependencies:
    counted, given = tally()
    relations, overall = ranked(counted, (LAYERS, HEADS))
    whole = counted.halves[0] + counted.halves[1]
    words = "the", "old", "door", "of", "the", "house", "opened", ",", "<b>when</b>", "nobody"
    examples = Example(words, 0, 2, 2), Example(words, 4, 5, 2), Example(words, 1, 2, -1)
    relations = (
        replace(relations[0], examples=examples[:2]),
        replace(relations[1], examples=examples[2:]),
        *relations[2:],
    )
    return Dependencies(
        treebank=Treebank("small.conllu", 64, len(given), 1, 2, 1, 3, 512),
        kind=Kind.ENCODER if ahead else Kind.DECODER,
        layers=LAYERS,
        heads=HEADS,
        relations=relations,
        overall=overall,
        accuracies=shares(whole.right, whole.count)[..., :-1],
        fixed_distances=FIXED_DISTANCES,
        distance_accuracies=shares(whole.distance_right, whole.count)[:, :-1],
        ahead=ahead,
        certified={Verdict.CERTIFIED: 36},
        sampled=3,
        unlike=2e-7,
        provenance=made_results.provenance(),
        shown=shown,
    )


SAID, CASES = sheet.said, Case


def by_errors(*errors: float, counts: int = 30, shown: str = "", distance: int = 2) -> Dependencies:
    """Relations whose heads are so many standard errors above their distance, .1 each."""
    found = dependencies()
    first = found.relations[0]
    assert first.held_out is not None
    relations = tuple(
        replace(
            first,
            name=f"r{i}",
            count=counts,
            best=replace(first.best, layer=3, head=2),
            baseline=replace(first.baseline, accuracy=0.4, fixed_distance=distance),
            held_out=replace(
                first.held_out,
                accuracy=0.4 + each / 10,
                above_control=each / 10,
                low=(each - Z) / 10,
                high=(each + Z) / 10,
            ),
        )
        for i, each in enumerate(errors)
    )
    shape = (*found.accuracies.shape[:3], len(relations))
    offsets = np.zeros((len(found.fixed_distances), len(relations)))
    bank = replace(found.treebank, sentences=60, too_long=0, without_relation=0, unreadable=0)
    return replace(
        found,
        relations=relations,
        accuracies=np.zeros(shape),
        distance_accuracies=offsets,
        treebank=replace(bank, pairs_without_piece=0),
        shown=shown,
    )


def another() -> Dependencies:
    """A head that takes another word of the same name."""
    found = by_errors(4.0)
    missed = Example(("the", "door", "of", "the"), 1, 0, 3)
    return replace(found, relations=(replace(found.relations[0], examples=(missed,)),))


WHOLE = Focus(verbose=True)
EXAMPLES: dict[str, Callable[[], Dependencies] | tuple[Callable[[], Dependencies], Focus]] = {
    "found": (dependencies, WHOLE),
    "found, and no head looks ahead": lambda: dependencies(ahead=False),
    "found, one": lambda: by_errors(0.5, 4.0, -0.5),
    "found, several": lambda: by_errors(3.0, 3.5, -0.5),
    "found, another word": (another, WHOLE),
    "nearest": lambda: by_errors(2.0, -0.5, -4.0),
    "nearest of many": lambda: by_errors(*[0.1 * i for i in range(20)]),
    "nearest, three alone": lambda: by_errors(-2.3, 2.2, 2.5, *[0.0] * 9),
    "distance": lambda: by_errors(-0.5, -4.0),
    "few pairs": lambda: by_errors(4.0, counts=19),
    "few pairs, long sentences": lambda: replace(by_errors(4.0, counts=19), treebank=dependencies().treebank),
    "one better": lambda: by_errors(4.0, shown="r0"),
    "one better than the next word": lambda: by_errors(4.0, shown="r0", distance=1),
    "one better than the word before": lambda: by_errors(4.0, shown="r0", distance=-1),
    "one worse": lambda: by_errors(-4.0, shown="r0", distance=-3),
    "one open": lambda: by_errors(0.5, shown="r0", distance=5),
    "one few": lambda: by_errors(4.0, counts=7, shown="r0"),
    "one of a treebank": lambda: dependencies("nsubj"),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "found, one": (Case.FOUND, "1 of 3 relations is", "r1: L3 H2", ".80 of its 30 pairs", ".40"),
    "found, several": (Case.FOUND, "2 of 3 relations are", "r1: L3 H2", ".75", ".40"),
    "nearest": (Case.NEAREST, "3 relations", "r0: L3 H2", ".60", ".40", ".00 to +.40"),
    "distance": (Case.DISTANCE, "2 relations", "better for r1"),
    "few pairs": (Case.FEW_PAIRS, "20 pairs"),
    "one better": (Case.ONE_BETTER, "L3 H2 finds r0", ".80 of 30 pairs", "the word two on .40", "+.40"),
    "one worse": (Case.ONE_WORSE, "L3 H2 finds r0", "the word three back .40"),
    "one open": (Case.ONE_OPEN, "not clear", "L3 H2 finds r0", ".45", ".40"),
    "one few": (Case.ONE_FEW, "r0", "7 pairs", "20"),
}
