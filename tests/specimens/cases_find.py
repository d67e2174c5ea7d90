"""A result for every case and every optional part of what `find` says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import cases_media
import made_results as made
import numpy as np

from attnscope.analysis.controls import ControlTexts
from attnscope.results import Contents, Finding, Kind, Pattern, Sought, Verdict
from attnscope.tokens import Tokens
from attnscope.verbs.find import sheet as finding_words
from attnscope.verbs.find.rank import summary
from attnscope.verbs.find.result import Case
from attnscope.vocabulary import Unit

LAYERS, HEADS, CONTROLS = (0, 2, 3), (0, 1, 4, 5), 30


def control_texts(tokens: Tokens, count: int = CONTROLS, asked: int = 40) -> ControlTexts:
    """Orders of all tokens but the first and the last."""
    random, last = np.random.default_rng(4), len(tokens) - 1
    sources = np.array([[0, *(1 + random.permutation(last - 1)), last] for _ in range(count)])
    return ControlTexts(np.array(tokens.ids)[sources], sources, "words change places", 5, asked)


def beside(own: np.ndarray, controls: np.ndarray, *, even: float = 0.09, **other: object) -> Finding:
    """Heads of one link with these numbers, and these in control texts; the first of layers and of heads."""
    plain = finding()
    smaller, asked = "question" in other and other["question"].like is not None, len(controls)
    texts = control_texts(plain.query_tokens, asked, max(asked, 19))
    made_of = {
        "weights": own,
        "controls": summary(own, controls, smaller).described(texts, "input_ids"),
        "even_attention": None if smaller else np.full(own.shape, even),
        "layers": tuple(range(len(own))),
        "heads": tuple(range(own.shape[1])),
        "verdicts": ((Verdict.CERTIFIED,) * own.shape[1],) * len(own),
        "ranks": None, "norms": None, "shares": None, "followed": None, "notes": (),
    }  # fmt: skip
    return replace(plain, **(made_of | other))  # type: ignore[arg-type]


def finding(
    *, pattern: Pattern | None = None, like: tuple[int, int] | None = None, by_norm: bool = True
) -> Finding:
    random, shape = np.random.default_rng(3), (len(LAYERS), len(HEADS))
    own, controls = random.random(shape) / 2, random.random((CONTROLS, *shape)) / 3
    own[1, 2] = 0.93
    if like is not None:
        place = LAYERS.index(like[0]), HEADS.index(like[1])
        own[place] = np.nan
        controls[:, place[0], place[1]] = np.nan
    tokens, pair = made.tokens(made.DOOR), pattern is None and like is None
    second = Verdict.CERTIFIED if pair else Verdict.PARTIAL
    ranked = None if like is not None else np.floor(1 + 3 * random.random(shape))
    return Finding(
        question=Sought(query=8, key=2) if pair else Sought(pattern=pattern, like=like),
        kind=Kind.ENCODER,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=LAYERS,
        heads=HEADS,
        rows=1 if pair else len(tokens) - 2,
        weights=own,
        ranks=ranked,
        norms=4 * own if by_norm and like is None else None,
        shares=own / 2 if by_norm and like is None else None,
        even_attention=np.full(shape, 1 / 13) if like is None else None,
        followed=0.6 * own if pair else None,
        controls=summary(own, controls, like is not None).described(control_texts(tokens), "input_ids"),
        verdicts=((Verdict.CERTIFIED,) * 4, (second,) * 4, (Verdict.CERTIFIED,) * 4),
        provenance=made.provenance(),
        notes=("odd",),
        links=np.array([[8, 2]]) if pair else np.zeros((0, 2), dtype=int),
    )


SAID, CASES = finding_words.said, Case
STEADY = np.random.default_rng(0).random((60, 3, 4)) / 50  # of every head in every control
LOW = np.full((3, 4), 0.01)


def with_heads(
    heads: dict[tuple[int, int], float], controls: np.ndarray = STEADY, **other: object
) -> Finding:
    own = LOW.copy()
    for place, value in heads.items():
        own[place] = value
    return beside(own, controls, **other)


def raised(place: tuple[int, int], low: float, high: float) -> np.ndarray:
    """The same controls, in which one head has numbers between these."""
    controls = STEADY.copy()
    controls[:, *place] = low + (high - low) * np.random.default_rng(1).random(60)
    return controls


def alike(*like: int) -> Finding:
    own = np.where(LOW > 0, 0.4, 0) - 0.39 * np.isin(np.arange(12).reshape(3, 4), like)
    return beside(own, 0.14 + raised((0, 0), 0, 0.1), question=Sought(like=(2, 4)))


def cannot(**other: object) -> Finding:
    wandering = raised((1, 2), 0.0, 0.65)
    wandering[:10, 2, 2] = 0.9
    return with_heads({(1, 2): 0.72}, wandering, **other)


def previous(own: float, low: float, high: float, also: float = 0) -> Finding:
    controls = raised((0, 1), low, high)
    controls[:, 1, 1] += also and also - 0.1
    heads = {(0, 1): own} | ({(1, 1): also} if also else {})
    return with_heads(heads, controls, question=Sought(pattern=Pattern.PREVIOUS))


def of(contents: Contents, found: Finding) -> Finding:
    return replace(found, controls=replace(found.controls, of=contents))


def wanted(count: int, found: Finding) -> Finding:
    return replace(found, controls=replace(found.controls, wanted=count))


ONE = with_heads({(1, 2): 0.71})
SEVERAL = with_heads({(1, 2): 0.9, (2, 0): 0.5})


def rare() -> Finding:
    controls = np.zeros((40, 2, 3))
    controls[np.arange(6), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]] = 3.0  # in each another head is clear
    return beside(np.full((2, 3), 0.5), controls)


def pattern(sought: Pattern) -> Finding:
    return replace(SEVERAL, question=Sought(pattern=sought))


def of_patches(sought: Pattern) -> Finding:
    patches = cases_media.patch_tokens()
    found = replace(pattern(sought), query_tokens=patches, key_tokens=patches, links=np.zeros((0, 2), int))
    return of(Contents.PICTURE, found)


EXAMPLES: dict[str, Callable[[], Finding]] = {
    "several": lambda: SEVERAL,
    "several of one layer": lambda: with_heads({(1, 2): 0.9, (1, 1): 0.5, (1, 0): 0.4}),
    "one": lambda: ONE,
    "one that follows the word": lambda: with_heads({(1, 2): 0.71}, followed=np.full((3, 4), 0.47)),
    "one of a decoder": lambda: replace(ONE, kind=Kind.CROSS),
    "one of a picture": lambda: of(Contents.PICTURE, ONE),
    "one of a sound": lambda: of(Contents.SOUND, ONE),
    "the one that was asked": lambda: replace(ONE, apart=((1, 2),)),
    "one by sentences": lambda: replace(ONE, by=Unit.SENTENCE),
    "one, fewer controls than wanted": lambda: wanted(100, ONE),
    "one alike": lambda: alike(7),
    "several alike": lambda: alike(7, 8),
    "cannot tell": cannot,
    "cannot tell, one follows the word": lambda: cannot(followed=np.full((3, 4), 0.5)),
    "cannot tell alike": lambda: beside(
        np.full((3, 4), 0.3), 0.2 + STEADY * 10, question=Sought(like=(2, 4))
    ),
    "position only": lambda: with_heads({(0, 1): 0.75}, raised((0, 1), 0.6, 0.8)),
    "key only": lambda: with_heads({(0, 1): 0.75}, elsewhere=np.full((3, 4), 0.6), sampled=14),
    "key only, a pattern": lambda: with_heads(
        {(0, 1): 0.75}, elsewhere=np.full((3, 4), 0.6), question=Sought(pattern=Pattern.INDUCTION)
    ),
    "nothing": lambda: with_heads({(0, 1): 0.07}),
    "position sought": lambda: previous(0.99, 0.97, 0.99, also=0.8),
    "position sought, no other": lambda: previous(0.99, 0.97, 0.99),
    "position lost": lambda: previous(0.99, 0.1, 0.3),
    "too short": lambda: wanted(40, with_heads({(1, 2): 0.9}, STEADY[:12])),
    "few controls": lambda: wanted(12, with_heads({(1, 2): 0.9}, STEADY[:12])),
    "unranked": lambda: beside(np.full((3, 4), np.nan), STEADY),
    "perhaps": rare,
    "a sink": lambda: replace(finding(), key_lengths=np.array([1.0, 4.5, 12.0])),
    "a special key": lambda: replace(finding(), question=Sought(query=8, key=0), links=np.array([[8, 0]])),
    **{f"at {each}": partial(pattern, each) for each in Pattern},
    **{f"at {each} of a picture": partial(of_patches, each) for each in Pattern},
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "several": (Case.SEVERAL, "2 of 12", "“it”", "“cat”", "L1 H2", ".90", ".01"),
    "one": (Case.ONE, "12 heads", "L1 H2", ".71", ".01", "60 shuffled"),
    "cannot tell": (Case.CANNOT_TELL, "L1 H2", ".72", "In 10 of 60"),
    "position only": (Case.POSITION_ONLY, "L0 H1", ".75", ".71"),
    "key only": (Case.KEY_ONLY, "L0 H1", ".75", ".60", "14 other"),
    "nothing": (Case.NOTHING, ".07", "L0 H1", ".09"),
    "too short": (Case.TOO_SHORT, "12", "19", "L1 H2", ".90"),
    "few controls": (Case.FEW_CONTROLS, "12", "19", "L1 H2", ".90"),
    "position sought": (Case.POSITION_SOUGHT, "L0 H1", ".99", ".98", "L1 H1"),
    "position lost": (Case.POSITION_LOST, "L0 H1", ".99", ".21"),
    "one alike": (Case.ONE, "L2 H4", "L1 H3", ".01", ".69"),
}
