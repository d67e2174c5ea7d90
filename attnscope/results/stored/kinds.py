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

KINDS = (
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
