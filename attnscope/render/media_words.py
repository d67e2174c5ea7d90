"""What is said of attention over a picture or a sound, the same in a terminal and beside a figure."""

from attnscope.render.numbers import weight_text
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
from attnscope.tokens import Tokens, printable

Media = PictureAttention | PictureHeads | SoundAttention | SoundHeads


def query_words(shown: Media) -> str:
    """`query [CLS]`, `query 'door' (4)`, or that the mean over all queries is shown."""
    query, tokens = shown.gaze.query, _head(shown).query_tokens
    if query is None:
        return f"mean over {len(tokens)} queries"
    return f"query {tokens.labels[query]}" if tokens.items[query].span is None else _named(tokens, query)


def _named(tokens: Tokens, query: int) -> str:
    return f"query {query} “{tokens.names[query]}”"


def medium_words(shown: Media) -> str:
    """Name of the file, and how it was read and cut."""
    if isinstance(shown, PictureAttention | PictureHeads):
        return picture_words(shown.picture, *shown.gaze.keys.shape)
    return sound_words(shown.sound, len(shown.gaze.keys), shown.seconds)


def picture_words(picture: Picture, rows: int, columns: int) -> str:
    height, width = picture.size
    patch = f"{picture.covered[0] // rows} x {picture.covered[1] // columns}"
    read = f"read as {height} x {width} pixels, {rows} rows x {columns} columns of {patch}"
    return f"{printable(picture.name)} {read}"


def sound_words(sound: Sound, frames: int, seconds: float) -> str:
    read = f"{sound.seconds:.2f} s at {sound.rate} Hz, {frames} frames of {1000 * seconds:g} ms"
    return f"{printable(sound.name)} {read}"


def shares(shown: PictureAttention | SoundAttention) -> list[str]:
    """How much of the row lies on the picture or sound, and how much on each other thing."""
    on = "on the picture" if isinstance(shown, PictureAttention) else "on the sound"
    told = [f"{on} {weight_text(float(shown.weights.sum()))}"]
    told += [f"{printable(name)} {weight_text(value)}" for name, value in shown.elsewhere.items()]
    rest = 1 - float(shown.weights.sum()) - sum(shown.elsewhere.values())
    return [*told, f"sink {weight_text(rest)}"] if shown.head.sink is not None else told


def _head(shown: Media) -> Overview | HeadAttention:
    return shown.head if isinstance(shown, PictureAttention | SoundAttention) else shown.overview
