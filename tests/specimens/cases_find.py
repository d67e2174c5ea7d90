"""A result for every case and every optional part of what `find` says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_finding as made
import made_media
import numpy as np

from attnscope.render.sheets import finding_words
from attnscope.results import Contents, Finding, Kind, Pattern, Sought
from attnscope.results.claims.finding import Case
from attnscope.vocabulary import Unit

SAID, CASES = finding_words.said, Case
STEADY = np.random.default_rng(0).random((60, 3, 4)) / 50  # of every head in every control
LOW = np.full((3, 4), 0.01)


def with_heads(
    heads: dict[tuple[int, int], float], controls: np.ndarray = STEADY, **other: object
) -> Finding:
    own = LOW.copy()
    for place, value in heads.items():
        own[place] = value
    return made.beside(own, controls, **other)


def raised(place: tuple[int, int], low: float, high: float) -> np.ndarray:
    """The same controls, in which one head has numbers between these."""
    controls = STEADY.copy()
    controls[:, *place] = low + (high - low) * np.random.default_rng(1).random(60)
    return controls


def alike(*like: int) -> Finding:
    own = np.where(LOW > 0, 0.4, 0) - 0.39 * np.isin(np.arange(12).reshape(3, 4), like)
    return made.beside(own, 0.14 + raised((0, 0), 0, 0.1), question=Sought(like=(2, 4)))


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
    return made.beside(np.full((2, 3), 0.5), controls)


def pattern(sought: Pattern) -> Finding:
    return replace(SEVERAL, question=Sought(pattern=sought))


def of_patches(sought: Pattern) -> Finding:
    patches = made_media.patch_tokens()
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
    "cannot tell alike": lambda: made.beside(
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
    "unranked": lambda: made.beside(np.full((3, 4), np.nan), STEADY),
    "perhaps": rare,
    "a sink": lambda: replace(made.finding(), key_lengths=np.array([1.0, 4.5, 12.0])),
    "a special key": lambda: replace(
        made.finding(), question=Sought(query=8, key=0), links=np.array([[8, 0]])
    ),
    **{f"at {each}": partial(pattern, each) for each in Pattern},
    **{f"at {each} of a picture": partial(of_patches, each) for each in Pattern},
}
