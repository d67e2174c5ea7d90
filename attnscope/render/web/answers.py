"""A map as a page knows it, with all that has to be said beside it."""

from typing import Any

from attnscope.render.sheets.map import (
    DISCLAIMER,
    centring_words,
    correlation_words,
    points_words,
    settings_words,
    trust_words,
)
from attnscope.render.web.blocks import short
from attnscope.results import Projection


def of_map(found: Projection) -> dict[str, Any]:
    """Points with their names and weights; a point of a view stands for the tokens in its group."""
    view = found.view
    rows = [[i] for i in range(len(found.query_tokens))] if view is None else view.query_groups
    says = [
        trust_words(found),
        correlation_words(found),
        centring_words(found),
        ", ".join(settings_words(found)),
    ]
    return {
        "queries": short(found.queries),
        "keys": short(found.keys),
        "queryNames": list(found.query_tokens.names),
        "keyNames": list(found.key_tokens.names),
        "rows": rows,
        "weights": [
            [weight if allowed else None for weight, allowed in zip(*row, strict=True)]
            for row in zip(short(found.weights), found.allowed.tolist(), strict=True)
        ],
        "says": [each for each in (*says, *points_words(found), DISCLAIMER) if each],
    }
