"""The modules whose import registers how each result is written and read."""

from attnscope.results.stored import (
    comparison,
    media,
    outline,
    prediction,
    report,
    senses,
    verification,
    worked,
)
from attnscope.results.stored.claims import (
    ablation,
    checking,
    composition,
    corpus,
    difference,
    finding,
    flow,
    relations,
    thumbnails,
)
from attnscope.results.stored.heads import dimensions, head, long, overview, projection, terms, view

KINDS = (
    ablation,
    comparison,
    checking,
    composition,
    corpus,
    difference,
    dimensions,
    finding,
    flow,
    head,
    long,
    media,
    outline,
    overview,
    prediction,
    projection,
    relations,
    report,
    senses,
    terms,
    thumbnails,
    verification,
    view,
    worked,
)
