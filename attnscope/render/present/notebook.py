"""A result in a notebook: its certificate and its picture, or where there is none what a terminal shows.

Nothing is loaded from elsewhere and nothing runs: viewers that strip scripts show the same.
"""

import base64
from html import escape
from weakref import WeakKeyDictionary

from attnscope.render.present.summary import summary
from attnscope.render.present.written import USUAL, written
from attnscope.render.proof import proof
from attnscope.render.saving import content, picture_suffixes
from attnscope.results import Result

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
