"""Attention of one query laid over the picture or the sound that was read."""

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overlay import (
    default_query,
    heads_over_picture,
    heads_over_sound,
    over_picture,
    over_sound,
)
from attnscope.analysis.heads.overview import measure_heads
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.results import (
    HeadAttention,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
)
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.reading import Reading
from attnscope.session.which import Name
from attnscope.tokens import Tokens

Laid = PictureAttention | PictureHeads | SoundAttention | SoundHeads
MEAN = "mean"


def lay_over(reading: Reading, chosen: Chosen, query: Name | None = None) -> Laid:
    """The chosen heads over the medium, for `query`; which one is looked at where none is named is told."""
    with reading.listener.working("reading the attention"):
        captured = reading.capture(chosen)
    medium = reading.medium
    if medium is None:
        raise InputError(f"{reading.model.name} reads a picture in pieces: it cannot be laid over one")
    tell_windows(captured, reading, chosen)
    if chosen.one:
        head = recompute_head(captured, *chosen.only(), block=chosen.block)
        return _over(head, medium, _query(head.query_tokens, head.key_tokens, query, reading.listener))
    several = measure_heads(captured, chosen.heads, chosen.block)
    position = _query(several.query_tokens, several.key_tokens, query, reading.listener)
    if isinstance(medium, Picture):
        return heads_over_picture(several, medium, position)
    return heads_over_sound(several, medium, position)


def laid_over(reading: Reading, head: HeadAttention, query: int) -> PictureAttention | SoundAttention | None:
    """A head that is read already over the medium, for `query`; None without a medium."""
    medium = reading.medium
    if medium is None:
        return None
    return _over(head, medium, query)


def _over(
    head: HeadAttention, medium: Picture | Sound, query: int | None
) -> PictureAttention | SoundAttention:
    return (
        over_picture(head, medium, query) if isinstance(medium, Picture) else over_sound(head, medium, query)
    )


def tell_windows(captured: Capture, reading: Reading, chosen: Chosen) -> None:
    """Which window of a picture is shown; `InputError` where several layers are, each with its own."""
    windows = max(call.block for call in captured.calls) + 1
    if windows < 2:
        return
    if len(chosen.layers) > 1:
        raise InputError(f"each layer of {reading.model.name} has windows of its own: name one with --layer")
    shown = captured.call(chosen.layers[0], block=chosen.block).block
    reading.listener.notice(f"it is read in {windows} windows: showing {shown} (--block chooses)")


def _query(tokens: Tokens, keys: Tokens, wanted: Name | None, listener: Listener) -> int | None:
    if wanted is not None:
        return None if wanted == MEAN and MEAN not in tokens.names else tokens.position(wanted)
    chosen = default_query(tokens, keys)
    shown = f"the mean over all {len(tokens)} queries" if chosen is None else f"query {tokens.named(chosen)}"
    listener.notice(f"showing {shown} (--query chooses)")
    return chosen
