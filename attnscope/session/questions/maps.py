"""The queries and keys of one head in one map."""

from attnscope.analysis.projection import project_head
from attnscope.results import HeadAttention, MapSettings, Projection
from attnscope.session.listener import Listener
from attnscope.session.looking import look_at
from attnscope.session.request import Looking


def map_head(
    head: HeadAttention,
    settings: MapSettings,
    listener: Listener,
    looking: Looking = Looking(),  # noqa: B008 - frozen
) -> Projection:
    """The map of a head, or of its words; what was done other than asked is told."""
    view = look_at(head, looking)
    with listener.working("drawing the map"):
        result = project_head(head, settings, view)
    if result.perplexity < result.wanted_perplexity:
        points = len(result.queries) + len(result.keys)
        lowered = f"perplexity lowered from {result.wanted_perplexity:g} to {result.perplexity:.3g}"
        listener.notice(f"{lowered}, a third of the {points} points less one")
    if not result.settled:
        listener.notice(
            f"the map had not settled after {result.iterations} iterations: --max-iter goes on for longer"
        )
    return result
