"""Several heads, each in full and one after the other, of one run of the model."""

from collections.abc import Iterator

from attnscope.analysis import recompute_head
from attnscope.analysis.returned import returned_head
from attnscope.capture.returned import Returned
from attnscope.results import HeadView, HeadWeights
from attnscope.session.choosing import Chosen
from attnscope.session.questions.looking import look_at
from attnscope.session.reading import Reading
from attnscope.session.request import Looking


def each_head(reading: Reading, chosen: Chosen, looking: Looking) -> Iterator[HeadWeights | HeadView]:
    """Every chosen head of every chosen layer as it is looked at, certified where it can be recomputed."""
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
    for layer in chosen.layers:
        for head in chosen.heads:
            if isinstance(attention, Returned):
                weights: HeadWeights = returned_head(attention, layer, head)
            else:
                weights = recompute_head(attention, layer, head, block=chosen.block)
            yield look_at(weights, looking) or weights
