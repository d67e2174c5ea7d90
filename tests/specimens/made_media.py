"""Attention over a picture and a sound, made by hand: 3 x 5 patches behind a class token, 40 frames."""

from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.analysis.heads.overlay import heads_over_picture, heads_over_sound, over_picture, over_sound
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
