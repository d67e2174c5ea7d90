"""The modules whose import registers how each result is written and read."""

from attnscope.results.stored import (
    comparison,
    head,
    media,
    outline,
    overview,
    prediction,
    projection,
    report,
    senses,
    terms,
    verification,
    view,
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
