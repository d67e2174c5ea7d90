"""Citations as they could have come out: from one passage, none or several; and cases that were judged."""

import math

import made_results as made
import numpy as np

from attnscope.results import Citation, Kind, Referee, Verdict
from attnscope.results.claims.citation import Column, Method, Passage, Statement
from attnscope.results.claims.prompts import Refused
from attnscope.results.claims.referee import Judged, Score
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit

TEXTS = ("The door was red.", "A box fell.", "She saw it.", "What was red?")
# nats that a sentence loses: without each passage, without all, and in controls
LOST = {
    "from": ((4.0, 0.1, -0.2), 4.4, (0.3, -0.1)),
    "two": ((3.0, 2.5, 0.05), 5.0, (0.05,)),
    "controlled": ((2.0, 0.1, 0.0), 2.2, (1.9, 0.1)),
    "none": ((0.1, 0.2, -0.4), 0.3, ()),
    "spread": ((0.3, 0.4, 0.2), 3.0, ()),
}
_CANDIDATES = {"from": (0,), "two": (0, 1), "controlled": (0,)}


def read(*more: str) -> Tokens:
    """A token for each word of the passages and the question, then one for each of `more`."""
    text, items = " ".join(TEXTS), list[Token]()
    for words, part in ((text, 0), (" ".join(more), 1)):
        start = 0
        for word in words.split():
            at = words.index(word, start)
            start = at + len(word)
            items.append(Token(len(items), word, word, (at, start), len(items), part))
    return Tokens((text, " ".join(more)), tuple(items), written="given")


def passages() -> tuple[Passage, ...]:
    first, found = 0, []
    for text in TEXTS[:-1]:
        count = len(text.split())
        found.append(Passage(text, tuple(range(first, first + count))))
        first += count
    return tuple(found)


def citation(*cases: str, subsets: int = 0, attention: float = 0.3) -> Citation:
    """A sentence of the answer for each of `cases`, by default the first of them."""
    cases = cases or ("from",)
    tokens = read(*("door" for _ in cases))
    lost = np.array([LOST[case][0] for case in cases])
    if subsets:
        lost[:, 2] = math.nan
    given = np.array([[attention, 0.2, 0.1]] * len(cases))
    statements = tuple(
        Statement(
            "door",
            (len(tokens) - len(cases) + i,),
            -0.1,
            LOST[case][1],
            _CANDIDATES.get(case, ()),
            LOST[case][2],
            0.8 if subsets else math.nan,
        )
        for i, case in enumerate(cases)
    )
    columns = (
        Column(Method("attention"), given),
        Column(Method("copying heads"), None, "no head copies"),
        Column(Method("by norm"), given[:, ::-1].copy()),
        Column(Method("gradient x input"), -given),
    )
    heads = {Verdict.CERTIFIED: 4}
    return Citation(
        tokens, passages(), " ".join("door" for _ in cases), statements, columns, lost, TEXTS[-1], "given",
        Kind.DECODER, (0, 1), (0, 1), ((1, 0),), 1e-7, heads, made.provenance(), Unit.SENTENCE,
        subsets=subsets, weights=np.array([[3.0, 0.5, 0.0]] * len(cases)) if subsets else None, seed=4,
    )  # fmt: skip


def referee(*, none: bool = True, wrong: int = 0) -> Referee:
    """Six cases with a source, and two without; in so many of these removal names one."""
    named = [((0,), (0,)), ((1,), (1,)), ((2,), ()), ((0, 1), (0,)), ((1,), (2,)), ((3,), (3,))]
    named += [((), (1,) if i < wrong else ()) for i in range(2)] if none else []
    nan = math.nan
    judged = tuple(
        Judged(i + 1, f"question {i}", "door", 0.9 - 0.1 * i, source, 4, found,
               (1.0, 2.0, nan) if source else (nan,) * 3, (3.0 + i, 0.2, nan))
        for i, (source, found) in enumerate(named)
    )  # fmt: skip
    scores = (
        Score(Method("removal"), 6, 1.0, 0.61, 1.0, 1.0, 1.0, 1.0, 0.1 if none else nan),
        Score(Method("attention"), 6, 0.0, 0.0, 0.39, 0.5, 0.5, 0.5, 0.5 if none else nan),
        Score(Method("attention x gradient"), 0, nan, nan, nan, nan, nan, nan, nan),
    )
    refused = (Refused(9, "the text has 3,000 tokens"),)
    heads = {Verdict.CERTIFIED: 32}
    told = made.provenance()
    return Referee("cases.jsonl", judged, scores, 0.29, "given", Kind.DECODER, heads, told, refused)
