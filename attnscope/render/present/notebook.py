"""A result in a notebook: its certificate, its page in a frame of its own, and its picture or else its text.

Nothing is loaded from elsewhere. The frame is opened by who wants it; it may run the page's own scripts and
nothing else, and cannot reach the notebook. Viewers that strip frames or scripts show the rest as before.
"""

import base64
from html import escape
from weakref import WeakKeyDictionary

from attnscope.errors import InputError
from attnscope.render.present.summary import summary
from attnscope.render.present.written import USUAL, written
from attnscope.render.proof import proof
from attnscope.render.saving import PAGE, content, picture_suffixes
from attnscope.results import Result

_LINE = "font-family:monospace;white-space:pre-wrap;margin:0 0 .4em 0"
_TEXT = "font-family:monospace;white-space:pre;line-height:1.2;overflow-x:auto;margin:0"

_FRAME = "width:100%;height:680px;border:1px solid #8884"
MOST_FRAMED = 2_000_000  # bytes of a page that is put into a notebook, which is stored with all it shows

# a notebook asks for the HTML and for the PNG of one result: it is drawn once
_drawn: WeakKeyDictionary[Result, bytes] = WeakKeyDictionary()
_framed: WeakKeyDictionary[Result, str] = WeakKeyDictionary()


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
        return f'<div><pre style="{_TEXT}">{escape(written(result, width=USUAL))}</pre>{frame(result)}</div>'
    source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    line = f'<div style="{_LINE}">{escape(proof(result))}</div>'
    alt = escape(summary(result).strip("<>"))
    shown = f'<img alt="{alt}" src="{source}" style="max-width:100%;height:auto">'
    return f"<div>{line}{frame(result)}{shown}</div>"


def frame(result: Result) -> str:
    """The page of a result, closed until it is asked for; empty where it would be too large."""
    if result not in _framed:
        _framed[result] = _frame_of(result)
    return _framed[result]


def _frame_of(result: Result) -> str:
    try:
        page = content(result, PAGE)
    except InputError:  # larger than any page may be, or without its weights
        return ""
    if len(page) > MOST_FRAMED:
        told = f"interactive: .save('page.html') writes a page of {len(page) / 1e6:.1f} MB"
        return f'<div style="{_LINE}">{told}</div>'
    title = escape(summary(result).strip("<>"))
    return (
        f'<details style="margin:0 0 .4em 0"><summary style="{_LINE}">interactive</summary>'
        f'<iframe title="{title}" sandbox="allow-scripts allow-downloads" loading="lazy" style="{_FRAME}" '
        f'srcdoc="{escape(page.decode())}"></iframe></details>'
    )
