"""What one prompt says of heads that are found, beside other prompts."""

from collections.abc import Iterator

import numpy as np

from attnscope.analysis.prompts import OnePrompt, Seen, Spans, of_head
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.verbs.find.result import Finding


def figures(result: Finding, spans: Spans) -> OnePrompt:
    """Each head by its number, beside the controls of this prompt."""
    return OnePrompt(Asked.LIKE if result.smaller_is_better else Asked.FIND, dict(_heads(result)))


def _heads(result: Finding) -> Iterator[tuple[Figure, Seen]]:
    measured = "distance" if result.smaller_is_better else "weight"
    for i, j in result.places:
        own, control = float(result.weights[i, j]), float(result.controls.mean[i, j])
        if result.elsewhere is not None:  # what other queries give explains as much
            control = float(np.fmax(control, result.elsewhere[i, j]))
        stands = bool(np.isfinite(own)) and result.stands_out((i, j))
        yield of_head(result.layers[i], result.heads[j], measured), Seen(own, control, stands=stands)
