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
    difference,
    finding,
    flow,
    relations,
    thumbnails,
)
from attnscope.results.stored.heads import head, overview, projection, terms, view

KINDS = (
    ablation,
    comparison,
    checking,
    difference,
    finding,
    flow,
    head,
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
