"""Every head of a reading in small, a few layers at a time."""

from collections.abc import Iterator
from dataclasses import replace

from attnscope.analysis.views.thumbnails import View, thumbnails
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.results import Thumbnails
from attnscope.session.choosing import Chosen
from attnscope.session.questions.heads import check_has_words
from attnscope.session.questions.media import tell_windows
from attnscope.session.reading import Reading
from attnscope.session.request import Looking

_HELD = 256 * 2**20  # bytes of weights in memory at once
TOKENS = Looking()
_OF_A_PAIR = 16  # bytes of a weight as it is recorded and recomputed


def read_thumbnails(reading: Reading, chosen: Chosen, looking: Looking = TOKENS) -> Thumbnails:
    """The weights of the chosen heads in all chosen layers, in few cells each."""
    check_has_words(reading, chosen, looking)
    view = View(looking.words, looking.treatment)
    with reading.listener.working("reading the attention"):
        found = thumbnails(_parts(reading, chosen), chosen.heads, chosen.block, view)
    return replace(found, notes=(*found.notes, *reading.notes))


def _parts(reading: Reading, chosen: Chosen) -> Iterator[Capture | Returned]:
    """The layers in as few runs as their weights fit into memory; each run ends with its last layer."""
    if reading.captured is not None:
        yield reading.capture(chosen)
        return
    seen = () if reading.perceived is None else reading.perceived.positions.items
    pairs = max(len(reading.tokens_of(chosen.kind)) * len(reading.encoded.tokens), len(seen) ** 2)
    each = max(_HELD // max(_OF_A_PAIR * pairs * len(chosen.heads), 1), 1)
    for first in range(0, len(chosen.layers), each):
        part = reading.attention(replace(chosen, layers=chosen.layers[first : first + each]))
        if seen and isinstance(part, Capture):
            tell_windows(part, reading, chosen)
        yield part
