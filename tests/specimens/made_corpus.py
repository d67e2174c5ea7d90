"""A corpus as it could have come out: numbers drawn for every head, totals as they are made of them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial

import made_results
import numpy as np

from attnscope.results import Corpus, CorpusDifference
from attnscope.verbs.compare.corpora import corpora_apart
from attnscope.verbs.corpus import merging
from attnscope.verbs.corpus.engine import SetAside
from attnscope.verbs.corpus.part import Part, Proved, Totals
from attnscope.verbs.corpus.question import Linked
from attnscope.verbs.corpus.result import LINKS, CorpusText
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.store import Place

LAYERS, HEADS = (0, 1, 3), (0, 2, 3, 5)
MEASURES = ("entropy", "previous", "offset", "moved", "pattern")


def values(texts: int, measures: tuple[str, ...], seed: int) -> np.ndarray:
    """`text measure layer head`; the third text lacks the second measure, and so does every text one head."""
    random = np.random.default_rng(seed)
    found = random.beta(2, 5, size=(texts, len(measures), len(LAYERS), len(HEADS)))
    for i, name in enumerate(measures):
        if name in ("offset", "pattern"):
            found[:, i] = random.integers(-3 if name == "offset" else 0, 4, size=found[:, i].shape)
        if name == "moved":
            found[:, i] *= 40
    found[2, 1] = np.nan
    found[:, 1, 1, 2] = np.nan
    return found


def corpus(
    name: str = "small.txt",
    texts: int = 41,
    seed: int = 0,
    *,
    linked: bool = False,
    failed: bool = False,
    held: int = 44,
    untried: int = 0,
    measures: tuple[str, ...] = MEASURES,
    drawn: np.ndarray | None = None,
    tokens: Sequence[int] | None = None,
) -> Corpus:
    """Every fifth text is told as too long to be kept as a whole."""
    measures = measures + (LINKS if linked else ())
    drawn = values(texts, measures, seed) if drawn is None else drawn
    tokens = [4 + 7 * i % 61 for i in range(texts)] if tokens is None else tokens
    if linked:
        drawn[:, -1] = drawn[:, -3] - drawn[:, -2]
    origin = asdict(replace(made_results.head().provenance, token_ids=()))
    read = [CorpusText(f"0:{i + 1}", int(tokens[i]), f"Text {i} of {name}.", i % 5 > 0) for i in range(texts)]
    verdicts = {"certified": 23, "failed": 1} if failed else {"certified": 24}
    part = Part(
        first=0, measures=measures, layers=LAYERS, heads=HEADS, kind="encoder", tower="", texts=texts,
        tokens=17 * texts, longest=64, limit=64, unknown=2, padded=texts // 2, cut=1, blanks=3,
        lines={0: texts + 4}, set_aside=(SetAside(0, 9, "it is not valid UTF-8", "caf\\xe9"),), absent={},
        proved=Proved(verdicts, 2, 3e-7, origin, (), held, 44, untried),
        totals=Totals.of(drawn, np.arange(texts), read), read=texts,
    )  # fmt: skip
    pair = Linked("VERB", "NOUN") if linked else None
    source = Source(Place(name), name, Form.LINES)
    shown = "link-gain" if linked else ""
    return merging.result(*merging.merged([part]), [source], (f"{seed:064x}",), pair, shown)


def apart() -> CorpusDifference:
    return corpora_apart(corpus(), corpus("other.txt", 30, 1))


linked = partial(corpus, linked=True)
