"""The product of one query and one key of a head, dimension by dimension."""

from attnscope.analysis.head import recompute_head
from attnscope.analysis.padding import without_padding
from attnscope.analysis.pair import pair_of
from attnscope.analysis.rotation import rotation_of
from attnscope.attention import AttentionCall, Capture
from attnscope.reference import exact
from attnscope.results import Dimensions
from attnscope.results.dimensions import Rotation

UNPAIRED = "its keys are turned, but not two and two by one angle from token to token"


def head_dimensions(
    captured: Capture,
    layer: int,
    head: int,
    query: str | int | None = None,
    key: str | int | None = None,
    block: int = 0,
) -> Dimensions:
    """Head `head` of a captured layer at one pair of tokens, by default its strongest.

    `InputError` when the head was not captured, or for a token that is not there or masked.
    """
    found = recompute_head(captured, layer, head, block=block)
    row, column = pair_of(found, query, key)
    rotation, unpaired = rotation_in(without_padding(captured.call(layer, block=block)), found.key_head)
    return Dimensions(found, row, column, rotation, unpaired)


def rotation_in(call: AttentionCall, key_head: int) -> tuple[Rotation | None, str]:
    """What turns the keys of one key head, and why it cannot be told where it cannot."""
    if call.unrotated_k is None:
        return None, ""
    before, after = (exact(each[key_head]).numpy() for each in (call.unrotated_k, call.k))
    if (before == after).all():  # the same numbers: nothing was computed in between
        return None, ""
    found = rotation_of(before, after)
    return found, "" if found is not None else UNPAIRED
