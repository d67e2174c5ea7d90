"""A result in a notebook: its certificate and its picture, or where there is none what a terminal shows.

Nothing is loaded from elsewhere and nothing runs: viewers that strip scripts show the same.
"""

import base64
from html import escape
from weakref import WeakKeyDictionary

from attnscope.render.kit.certificate import certificate_words, verdict_words
from attnscope.render.kit.numbers import counted
from attnscope.render.present.summary import summary
from attnscope.render.present.written import USUAL, written
from attnscope.render.saving import content, picture_suffixes
from attnscope.results import (
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Projection,
    Report,
    Result,
    SoundAttention,
    SoundHeads,
)

_LINE = "font-family:monospace;white-space:pre-wrap;margin:0 0 .4em 0"
_TEXT = "font-family:monospace;white-space:pre;line-height:1.2;overflow-x:auto;margin:0"

# a notebook asks for the HTML and for the PNG of one result: it is drawn once
_drawn: WeakKeyDictionary[Result, bytes] = WeakKeyDictionary()


def png(result: Result) -> bytes | None:
    """The picture of the whole result; None where it has none."""
    if not picture_suffixes(type(result)):
        return None
    if result not in _drawn:
        _drawn[result] = content(result, ".png")
    return _drawn[result]


def html(result: Result) -> str:
    """One `<div>`; every text of the model or the user is escaped."""
    picture = png(result)
    if picture is None:
        return f'<div><pre style="{_TEXT}">{escape(written(result, width=USUAL))}</pre></div>'
    source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    line = f'<div style="{_LINE}">{escape(proof(result))}</div>'
    alt = escape(summary(result).strip("<>"))
    return f'<div>{line}<img alt="{alt}" src="{source}" style="max-width:100%;height:auto"></div>'


def proof(result: Result) -> str:
    """What is proved: the certificate of the one head, or the worst verdict of several."""
    match result:
        case HeadWeights():
            return certificate_words(result.certificate)
        case HeadView() | HeadTerms() | Projection() | Report() | PictureAttention() | SoundAttention():
            return proof(result.head)
        case PictureHeads() | SoundHeads():
            return proof(result.overview)
        case Overview():
            every = [each.verdict for row in result.certificates for each in row]
            alike = f"{every.count(result.verdict)} of {counted(len(every), 'head')}"
            return f"{verdict_words(result.verdict)}: {alike}"
    return "" if result.verdict is None else verdict_words(result.verdict)
