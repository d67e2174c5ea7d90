"""Every head of a reading in small, a few layers at a time."""

from collections.abc import Iterator
from dataclasses import replace

from attnscope.analysis.views.thumbnails import thumbnails
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.results import Thumbnails
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading

_HELD = 256 * 2**20  # bytes of weights in memory at once
_OF_A_PAIR = 16  # bytes of a weight as it is recorded and recomputed


def read_thumbnails(reading: Reading, chosen: Chosen) -> Thumbnails:
    """The weights of the chosen heads in all chosen layers, in few cells each."""
    with reading.listener.working("reading the attention"):
        return thumbnails(_parts(reading, chosen), chosen.heads, chosen.block)


def _parts(reading: Reading, chosen: Chosen) -> Iterator[Capture | Returned]:
    """The layers in as few runs as their weights fit into memory; each run ends with its last layer."""
    if reading.captured is not None:
        yield reading.capture(chosen)
        return
    pairs = len(reading.tokens_of(chosen.kind)) * len(reading.encoded.tokens)
    each = max(_HELD // max(_OF_A_PAIR * pairs * len(chosen.heads), 1), 1)
    for first in range(0, len(chosen.layers), each):
        yield reading.attention(replace(chosen, layers=chosen.layers[first : first + each]))
