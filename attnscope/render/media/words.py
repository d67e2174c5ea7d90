"""What is said of attention over a picture or a sound, the same in a terminal and beside a figure."""

import numpy as np
from rich.text import Text

from attnscope.results import (
    HeadAttention,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
)
from attnscope.tokens import printable

Media = PictureAttention | PictureHeads | SoundAttention | SoundHeads


def query_words(shown: Media) -> str:
    """`query [CLS]`, `query r3c5`, `query 4 “door”`, or that the mean over all queries is shown."""
    query, tokens = shown.gaze.query, _head(shown).query_tokens
    if query is None:
        return f"mean over {len(tokens)} queries"
    name = tokens.names[query]
    of_text = tokens.items[query].id >= 0 and not tokens.items[query].special
    return f"query {query} “{name}”" if of_text else f"query {name}"


def medium_line(shown: Media) -> Text:
    """File and query, for the head of a terminal's answer."""
    return Text(f"{medium_words(shown)} · {query_words(shown)}", no_wrap=True, overflow="ellipsis")


def medium_words(shown: Media) -> str:
    """Name of the file, and how it was read and cut."""
    if isinstance(shown, PictureAttention | PictureHeads):
        return picture_words(shown.picture, *shown.gaze.keys.shape)
    return sound_words(shown.sound, len(shown.gaze.keys), shown.seconds)


def picture_words(picture: Picture, rows: int, columns: int) -> str:
    height, width = picture.size
    patch = f"{picture.covered[0] // rows} x {picture.covered[1] // columns}"
    read = f"read as {height} x {width} pixels, {rows} x {columns} patches of {patch}"
    return f"{printable(picture.name)}, {read}"


def sound_words(sound: Sound, frames: int, seconds: float) -> str:
    read = f"{sound.seconds:.2f} s at {sound.rate} Hz, {frames} frames of {1000 * seconds:g} ms"
    return f"{printable(sound.name)}, {read}"


def text_words(shown: Media) -> list[str]:
    """The text that the queries read, in quotation marks, if they read any."""
    tokens = _head(shown).query_tokens
    return [f"“{printable(tokens.sentence)}”"] if tokens.texts else []


def shares(shown: PictureAttention | SoundAttention) -> list[str]:
    """How much of the row lies on the picture or sound, and how much on each other thing, in per cent."""
    on = "picture" if isinstance(shown, PictureAttention) else "sound"
    parts = {on: float(np.nansum(shown.weights)), **shown.elsewhere}
    if shown.head.sink is not None:
        parts["sink"] = 1 - sum(parts.values())
    return [f"{printable(name)} {100 * share:.1f} %" for name, share in parts.items()]


def shares_words(shown: PictureAttention | SoundAttention) -> str:
    """The same in one line, with whose attention it is."""
    return f"attention, {query_words(shown)}: {', '.join(shares(shown))}"


def _head(shown: Media) -> HeadAttention | Overview:
    return shown.head if isinstance(shown, PictureAttention | SoundAttention) else shown.overview
