"""Relations of a treebank as they could have come out: heads that are right at random, one that mostly is."""

from dataclasses import replace

import made_results
import numpy as np

from attnscope.analysis.claims.relations.ranking import (
    FIXED_DISTANCES,
    Tally,
    accuracies,
    distance_accuracies,
    ranked,
)
from attnscope.results import Dependencies, Kind, Verdict
from attnscope.results.claims.relations import Example, Treebank

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
        accuracies=accuracies(whole)[..., :-1],
        fixed_distances=FIXED_DISTANCES,
        distance_accuracies=distance_accuracies(whole)[:, :-1],
        ahead=ahead,
        certified={Verdict.CERTIFIED: 36},
        sampled=3,
        unlike=2e-7,
        provenance=made_results.provenance(),
        shown=shown,
    )
