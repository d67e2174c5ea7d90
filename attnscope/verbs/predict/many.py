"""What one prompt says of the layers, beside other prompts."""

from collections.abc import Iterator

from attnscope.analysis.prompts import OnePrompt, Seen, Spans
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.verbs.predict.result import LayeredPrediction


def figures(result: LayeredPrediction, spans: Spans) -> OnePrompt:
    """Each layer by what it gives the model's answer."""
    return OnePrompt(Asked.LAYERS, dict(_layers(result)))


def _layers(result: LayeredPrediction) -> Iterator[tuple[Figure, Seen]]:
    for each in result.places[0].layers:
        name = "embeddings" if each.layer < 0 else f"layer {each.layer}"
        layer = None if each.layer < 0 else each.layer
        stands = each.rank == 1
        yield Figure(name, "probability", layer), Seen(each.probability, each.control, stands=stands)
