"""A result for every case of what is said of attention over a picture or a sound.

Made by hand: 3 x 5 patches behind a class token, 40 frames.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import made_results as made
import numpy as np

from attnscope.analysis.heads.overlay import heads_over_picture, heads_over_sound, over_picture, over_sound
from attnscope.render.sheets import Focus
from attnscope.render.sheets import media as sheet
from attnscope.results import (
    HeadAttention,
    Kind,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
)
from attnscope.results.media import Case
from attnscope.tokens import Frames, Patches, Token, Tokens

ROWS, COLUMNS = 3, 5
DIGEST = "5eed" * 16


def named(names: list[str], *stretches: Patches | Frames) -> Tokens:
    items = tuple(Token(-1, name, name, None, None, special=name.startswith("[")) for name in names)
    return Tokens((), items, stretches)


def patch_tokens() -> Tokens:
    patches = [f"r{i // COLUMNS}c{i % COLUMNS}" for i in range(ROWS * COLUMNS)]
    return named(["[CLS]", *patches], Patches(1, ROWS, COLUMNS))


def window_tokens() -> Tokens:
    """The lower right 2 x 3 patches of the picture, in an order of their own."""
    places = [-1] * (ROWS * COLUMNS)
    for position, cell in enumerate((14, 7, 8, 9, 12, 13)):
        places[cell] = position
    names = [f"r{cell // COLUMNS}c{cell % COLUMNS}" for cell in (14, 7, 8, 9, 12, 13)]
    return named(names, Patches(0, ROWS, COLUMNS, tuple(places)))


def frame_tokens(count: int = 40) -> Tokens:
    return named([f"{0.02 * i:.2f}s" for i in range(count)], Frames(0, count, 0.02))


def picture() -> Picture:
    """31 x 52 pixels, of which 30 x 50 are cut into patches of 10 x 10; red grows to the right."""
    pixels = np.zeros((31, 52, 3))
    pixels[..., 0] = np.linspace(0, 1, 52)
    pixels[..., 1] = np.linspace(0, 1, 31)[:, None]
    return Picture("scene.png", DIGEST, pixels, (30, 50))


def sound(seconds: float = 0.8) -> Sound:
    time = np.arange(int(seconds * 16000)) / 16000
    return Sound("tone.wav", DIGEST, 0.5 * np.sin(2 * np.pi * 440 * time), 16000)


def weights_of(queries: int, keys: int, seed: int = 3) -> np.ndarray:
    raw = np.random.default_rng(seed).exponential(size=(queries, keys))
    return raw / raw.sum(axis=1, keepdims=True)


def head(queries: Tokens, keys: Tokens, **changed: object) -> HeadAttention:
    """A head with these tokens and random weights, of which the queries are the logarithms."""
    shape = (len(queries), len(keys))
    plain, weights = made.head(["a", "b"]), weights_of(*shape)
    return replace(
        plain,
        query_tokens=queries,
        key_tokens=keys,
        weights=weights,
        scores=np.log(weights),
        scaled=np.log(weights),
        scale=1.0,
        allowed=np.ones(shape, bool),
        q=np.log(weights),
        k=np.eye(shape[1]),
        v=np.zeros((shape[1], 3)),
        output=np.zeros((shape[0], 3)),
        **changed,
    )


def several(tokens: Tokens, layers: int = 2, heads: int = 3) -> Overview:
    size = len(tokens)
    plain = made.overview(layers, heads)
    weights = tuple(tuple(weights_of(size, size, 10 * i + j) for j in range(heads)) for i in range(layers))
    return replace(plain, query_tokens=tokens, key_tokens=tokens, weights=weights)


def picture_head(query: int | None = 0) -> PictureAttention:
    return over_picture(head(patch_tokens(), patch_tokens()), picture(), query)


def window_head(query: int | None = 1) -> PictureAttention:
    return over_picture(head(window_tokens(), window_tokens()), picture(), query)


def picture_grid(query: int | None = 9) -> PictureHeads:
    return heads_over_picture(several(patch_tokens()), picture(), query)


def sound_head(query: int | None = 6) -> SoundAttention:
    return over_sound(head(frame_tokens(), frame_tokens()), sound(), query)


def spoken_head(query: int | None = None) -> SoundAttention:
    """Five tokens of a decoder over a sound of 0.5 s that was filled up with silence to 0.8 s."""
    words = made.tokens(["[CLS]", "the", "door", "opens", "."])
    return over_sound(head(words, frame_tokens(), kind=Kind.CROSS), sound(0.5), query)


def sound_grid(query: int | None = None) -> SoundHeads:
    return heads_over_sound(several(frame_tokens()), sound(), query)


SAID, CASES = sheet.said, Case


def at(result: Any, key: str) -> tuple[Callable[[], Any], Focus]:
    return lambda: result, Focus(key=result.head.key_tokens.names.index(key))


def none_read() -> PictureAttention:
    window = window_head(None)
    nothing = replace(window.gaze, keys=np.full((3, 5), -1))
    return replace(window, gaze=nothing, weights=np.full((3, 5), np.nan))


def no_head() -> PictureHeads:
    grid = picture_grid()
    gaze = replace(grid.gaze, keys=np.full_like(grid.gaze.keys, -1))
    return replace(grid, gaze=gaze, weights=np.full_like(grid.weights, np.nan))


def by_name(share: float) -> PictureAttention:
    """A head that gives this share of its attention to [CLS]."""
    plain = head(patch_tokens(), patch_tokens())
    row = np.array([share, *np.full(15, (1 - share) / 15)])
    row[7] += row[3]
    row[3] = 0
    return over_picture(replace(plain, weights=np.tile(row, (16, 1))), picture(), 0)


def certain() -> SoundHeads:
    """One head that looks at the frame at 0.06 s alone."""
    one = several(frame_tokens(), 1, 1)
    return heads_over_sound(replace(one, weights=((np.eye(40)[[3] * 40],),)), sound(), 6)


EXAMPLES: dict[str, Any] = {
    "a picture": picture_head,
    "a picture, its key a patch": at(picture_head(0), "r1c1"),
    "a picture, its key the class token": at(picture_head(4), "[CLS]"),
    "a picture, all over": lambda: picture_head(None),
    "a window": window_head,
    "nothing on [CLS]": lambda: by_name(0.0),
    "something on [CLS]": lambda: by_name(0.25),
    "most on [CLS]": lambda: by_name(0.8),
    "a sound": sound_head,
    "a sound that is heard": lambda: spoken_head(2),
    "a sound, over all tokens": spoken_head,
    "no patch": none_read,
    "no head": no_head,
    "heads over a picture": picture_grid,
    "heads over a sound": sound_grid,
    "one head over a sound": certain,
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "nothing on [CLS]": (Case.PLACE, "L3 H11 ", "[CLS]", "row 1, column 1", ".13", ".062"),
    "something on [CLS]": (Case.PLACE, ".10 ", ".75 is on the picture, .25 on [CLS]"),
    "most on [CLS]": (Case.ELSEWHERE, ".20 ", "picture, .80 to [CLS]", "row 1, column 1", ".027", ".062"),
    "a sound, over all tokens": (Case.PLACE, "5 tokens", ".025"),
    "no patch": (Case.NO_PLACE, "L3 H11 reads no patch"),
    "one head over a sound": (Case.HEADS, "L0 H0 ", "0.12s", "0.06s", "1.0"),
    "no head": (Case.NO_HEAD, "No head"),
}
