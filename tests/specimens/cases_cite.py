"""A result for every case and every optional part of what `cite` says."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.results import Citation, Kind, Referee, Verdict
from attnscope.results.base.groups import Passage
from attnscope.results.claims.prompts import Refused
from attnscope.tokens import Token, Tokens
from attnscope.verbs.cite import sheet
from attnscope.verbs.cite.result import Case, Column, Judged, Method, Score, Statement
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


SAID, CASES = sheet.said, Case


def lost(*nats: float, **of_statement: object) -> Citation:
    """What one sentence loses without each passage, of three or fewer."""
    whole = citation()
    own = replace(whole.statements[0], controls=(), **of_statement)
    columns = tuple(
        each if each.values is None else replace(each, values=each.values[:, : len(nats)])
        for each in whole.columns
    )
    passages = whole.passages[: len(nats)]
    return replace(whole, passages=passages, statements=(own,), lost=np.array([nats]), columns=columns)


def three() -> Citation:
    """Three of four passages, without any of which it is gone."""
    whole = lost(4.0, 3.9, 3.8, candidates=(0, 1, 2))
    column = Column(Method("attention"), np.full((1, 4), 0.2))
    four, gone = (*whole.passages, whole.passages[0]), np.array([[4.0, 3.9, 3.8, 0.01]])
    return replace(whole, passages=four, lost=gone, columns=(column,))


def rare(*cases: str) -> Citation:
    result = citation(*cases)
    return replace(
        result, statements=tuple(replace(each, log_probability=-9.0) for each in result.statements)
    )


def fitted(*r2: float) -> Citation:
    result = citation(*("from" for _ in r2), subsets=16)
    every = zip(result.statements, r2, strict=True)
    return replace(result, statements=tuple(replace(each, r2=own) for each, own in every))


def by_all() -> Citation:
    """Every way of ranking has numbers."""
    result = citation()
    given = result.columns[0].values
    columns = (Column(each, given) for each in list(Method)[2:8])
    return replace(result, columns=tuple(columns), kept="", copying=tuple((0, i) for i in range(10)))


EXAMPLES: dict[str, Callable[[], Citation]] = {
    "from one": citation,
    "from another than attention says": lambda: citation(attention=0.15),
    "from two": lambda: citation("two"),
    "from three": three,
    "from one of two": lambda: lost(4.0, 0.02),
    "from none": lambda: citation("none"),
    "from none of two": lambda: lost(0.1, 0.02, candidates=(), without_all=0.1),
    "likelier without all": lambda: lost(0.1, 0.02, 0.1, candidates=(), without_all=-0.05),
    "from all": lambda: citation("spread"),
    "half of the others do as much": lambda: citation("controlled"),
    "most from one of two": lambda: lost(8.0, 1.0, candidates=(), without_all=8.2),
    "hardly more from one of two": lambda: lost(0.6, 0.5, candidates=(), without_all=8.2),
    "of several": lambda: citation("none", "from", "spread", "none"),
    "of several that are rare": lambda: rare("none", "from"),
    "rare": rare,
    "rarer with all": lambda: replace(
        lost(0.1, 0.02, 0.1), statements=(replace(rare().statements[0], candidates=(), without_all=-0.05),)
    ),
    "by subsets": lambda: fitted(0.8),
    "by subsets of several": lambda: fitted(0.1, 0.8),
    "by subsets that all did the same": lambda: fitted(float("nan")),
    "by all": by_all,
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "from one": (Case.FROM, "passage 0", "“The door was red.”", "90.5 %", "1.7 %", "1.3 times", "found it"),
    "from another than attention says": (Case.FROM, "passage 1 (.20 of the attention, .15 for passage 0)"),
    "from two": (Case.FROM, "passages 0 and 1", "either of them", "7.4 %", "found them"),
    "from one of two": (Case.FROM, "Without the other "),
    "from none": (Case.NONE, "all 3 passages", "90.5 %", "67.0 %", "passage 0 (.30"),
    "from none of two": (Case.NONE, "both passages", "81.9 %"),
    "from all": (Case.SPREAD, "all 3 passages", "90.5 %", "4.5 %", "passage 1", "60.7 %"),
    "half of the others do as much": (Case.SPREAD, "passage 0", "12.2 %", "6.7 times"),
    "most from one of two": (
        Case.SPREAD,
        "passage 0",
        "8.0 times as many nats",
        "1 other passage",
        "39 times",
    ),
    "of several": (Case.FROM, "Of 4 sentences 1 ", "2 from none", "1 from no single one. “door” comes"),
    "rare": (Case.FROM, "55 times less probable"),
}
