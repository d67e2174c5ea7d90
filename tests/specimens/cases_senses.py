"""A result for every case and every optional part of what `compare` says of one word in many texts."""

from collections.abc import Callable
from dataclasses import replace

import made_results
import numpy as np

from attnscope.results import Kind, Senses, Verdict
from attnscope.verbs.compare import senses_sheet as sheet
from attnscope.verbs.compare.texts_result import SensesCase as Case
from attnscope.verbs.compare.texts_result import Usage
from attnscope.verbs.compare.words import separation, together

LABELS = ("river", "river", "money", "money", "money")
TEXTS = ("the bank of the river", "a muddy bank", "the bank has the money", "his bank", "two banks lend")


def senses(labelled: bool = True) -> Senses:
    random = np.random.default_rng(0)
    by_layer = [random.normal(size=(len(TEXTS), 2, 4)) for _ in range(3)]
    for vectors in by_layer[1:]:
        vectors[:2] += 1
    words = ("bank", "bank", "bank", "bank", "banks")
    labels = LABELS if labelled else ("",) * len(TEXTS)
    return Senses(
        question="bank",
        kind=Kind.ENCODER,
        usages=tuple(map(Usage, TEXTS, labels, words, (2, 3, 2, 2, 2))),
        layers=(0, 1, 2),
        heads=(0, 3),
        cosines=np.array([together(vectors) for vectors in by_layer]),
        separation=separation(by_layer, LABELS, controls=20, seed=0) if labelled else None,
        certified={Verdict.CERTIFIED: 30},
        provenance=made_results.provenance(),
    )


SAID, CASES = sheet.said, Case
FEW, ENOUGH = ("river",) * 3 + ("money",) * 3, ("river",) * 5 + ("money",) * 5


def by_rule(labels: tuple[str, ...], apart: float, controls: int = 1000, heads: int = 2) -> Senses:
    """Texts whose groups lie `apart` in layer 1, and nowhere else."""
    random = np.random.default_rng(1)
    by_layer = [random.normal(size=(len(labels), heads, 4)) for _ in range(3)]
    by_layer[1] += apart * np.array([label == labels[0] for label in labels])[:, None, None]
    usages = tuple(Usage(f"the bank of {i}", label, "bank", 2) for i, label in enumerate(labels))
    found = separation(by_layer, labels, controls, seed=0) if labels[0] else None
    cosines = np.array([together(vectors) for vectors in by_layer])
    plain = replace(senses(labelled=False), heads=(0, 3)[:heads])
    return replace(plain, usages=usages, cosines=cosines, separation=found)


EXAMPLES: dict[str, Callable[[], Senses]] = {
    "unlabelled": lambda: by_rule(("", "", ""), 0),
    "unlabelled, of one head": lambda: by_rule(("", "", ""), 0, heads=1),
    "few texts": lambda: by_rule(FEW, 9),
    "few texts, at several positions": senses,
    "few controls": lambda: by_rule(ENOUGH, 9, controls=10),
    "parted": lambda: by_rule(ENOUGH, 9),
    "parted beside shuffled labels": lambda: by_rule(ENOUGH, 9, controls=99),
    "cannot tell": lambda: by_rule(ENOUGH, 0),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "unlabelled": (Case("unlabelled"), "layer 2", "texts 1 and 2 (cosine "),
    "few texts": (
        Case("few texts"),
        "6 texts",
        "3 and 3",
        "4 and 4",
        "“bank”",
        "layer 1",
        "any of the 9 other",
    ),
    "few controls": (Case("few controls"), "10 shufflings", "19", "“bank”", "layer 1"),
    "parted": (Case("parted"), "“bank”", "10 texts", "layer 1", "any of the 125 other splits"),
    "cannot tell": (Case("cannot tell"), "“bank”", "10 texts", "125 other splits"),
}
