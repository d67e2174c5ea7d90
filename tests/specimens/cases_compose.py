"""A result for every case and every optional part of what `compose` says."""

from dataclasses import replace
from typing import Any

import made_results
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.results import Composition, Kind, Verdict
from attnscope.verbs.compose import sheet
from attnscope.verbs.compose.result import Case, HeadMatrix, Through

LAYERS, COUNTS, HIDDEN, DRAWS = (0, 1, 3), (4, 5, 3), 20, 50


def pairs(shown: tuple[int, int] | None = None) -> np.ndarray:
    """Every earlier head with every later one; with `shown` those that it is one of."""
    heads = [(layer, head) for layer, count in zip(LAYERS, COUNTS, strict=True) for head in range(count)]
    every = [(*early, *late) for early in heads for late in heads if early[0] < late[0]]
    return np.array([pair for pair in every if shown in (None, pair[:2], pair[2:])])


def composition(shown: tuple[int, int] | None = None, seed: int = 0) -> Composition:
    """Numbers by lot; no pair composes through values into the last layer."""
    random, found = np.random.default_rng(seed), pairs(shown)
    shape = (len(Through), len(found))
    scores = random.uniform(0.1, 0.6, shape)
    scores[2, found[:, 2] == 3] = np.nan
    lacking = np.isnan(scores)
    chance, spread, below, limit = (
        np.where(lacking, np.nan, each)
        for each in (
            random.uniform(0.2, 0.24, shape),
            random.uniform(0.01, 0.03, shape),
            DRAWS * (scores > 0.22),
            random.uniform(0.31, 0.35, shape),
        )
    )
    return Composition(
        kind=Kind.DECODER,
        layers=LAYERS,
        counts=COUNTS,
        hidden=HIDDEN,
        through=tuple(Through),
        pairs=found,
        scores=scores,
        chance=chance,
        spread=spread,
        below=below,
        limit=limit,
        draws=DRAWS,
        seed=3,
        inside=("residual additions", "the weights of norms before what the heads read"),
        outside=("other heads and feed-forward parts between them", "offsets"),
        reasons=("L3: no matrix alone makes its values",),
        certified={Verdict.CERTIFIED: 12},
        provenance=made_results.provenance(),
        shown=shown,
    )


SAID, CASES = sheet.said, Case
EVERY = composition()
PAIRS = EVERY.pairs.tolist()
FIRST, AWAY = PAIRS.index([0, 1, 1, 0]), PAIRS.index([1, 3, 3, 2])
OTHERS = [PAIRS.index([0, 1, 1, head]) for head in (2, 4)]
KEYS = HeadMatrix(1, "key", "k_proj", (0, 16), 16, None)
TURNED = replace(EVERY, outside=("rotary positions (queries and keys as at one position)",))


def alike(wired: dict[tuple[int, int], float], of: Composition = EVERY, limit: float = 0.3) -> Composition:
    """All pairs score .150, but for those at these inputs and places."""
    scores = np.full_like(of.scores, 0.15)
    for place, value in wired.items():
        scores[place] = value
    shape = of.scores.shape
    return replace(of, scores=scores, chance=np.full(shape, 0.2), limit=np.full(shape, limit))


def read_in(text: str, of: Composition) -> Composition:
    return replace(of, read_back_in=text)


def fewer() -> Composition:
    """Layers 1 and 3 have the weights of layers 0 and 3."""
    kept = EVERY.pairs[:, 0] == 0
    names = ("scores", "chance", "spread", "below", "limit")
    return replace(EVERY, pairs=EVERY.pairs[kept], **{each: getattr(EVERY, each)[:, kept] for each in names})


def without_values(*reasons: str) -> Composition:
    scores = EVERY.scores.copy()
    scores[2] = np.nan
    return replace(EVERY, scores=scores, reasons=reasons)


EXAMPLES: dict[str, Any] = {
    "no score": lambda: replace(EVERY, scores=np.full_like(EVERY.scores, np.nan)),
    "cannot tell": lambda: alike({(0, FIRST): 0.9}, replace(EVERY, hidden=8), limit=1.2),
    "nothing": lambda: alike({(2, FIRST): 0.25}),
    "one": lambda: alike({(1, FIRST): 0.6}),
    "several": lambda: alike({(1, FIRST): 0.6, (2, AWAY): 0.4}),
    "several of one layer": lambda: alike(
        {(0, FIRST): 0.6, (0, OTHERS[0]): 0.4, (0, OTHERS[1]): 0.5, (1, OTHERS[1]): 0.4}
    ),
    "rotary": lambda: alike({(1, FIRST): 0.6}, TURNED),
    "rotary, through values": lambda: alike({(2, FIRST): 0.6}, TURNED),
    "near what is needed": lambda: alike({(0, 3): 0.30002}),
    "every column": (lambda: EVERY, Focus(verbose=True)),
    "read in a text": lambda: read_in("it's late", EVERY),
    "one head": lambda: read_in("it's late", composition((1, 2))),
    "shared keys": lambda: replace(EVERY, counts=(4, 6, 3), matrices=(KEYS,)),
    "shared weights": fewer,
    "no values": lambda: without_values("L0 to L1 and 5 more: through values: nothing comes there"),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "no score": (Case.NO_SCORE,),
    "cannot tell": (Case.CANNOT_TELL, "8 dimensions", "141 pairs"),
    "nothing": (Case.NOTHING, "141 pairs", "L0 H1 → L1 H0 through values", ".250", ".200", ".300"),
    "one": (Case.ONE, "L1 H0 can read", "L0 H1 writes, as keys", ".600", ".200", ".300", "No other of 141"),
    "several": (Case.SEVERAL, "L1 H0 can read", "L0 H1 writes, as keys", ".600", "all, 2 of 141"),
    "several of one layer": (Case.SEVERAL, "3 of 5 heads of layer 1", "as queries: L1 H0", "all, 4 of 141"),
}
