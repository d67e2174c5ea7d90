"""Views of a result for Python: text, picture, page, notebook HTML, one-line summary, data frame.

A notebook's picture is small and follows the theme: white is transparent, and in dark mode lightness is
inverted while hues stay. A page is a fragment that shares no names or styles with the notebook. Data frames
have named axes: matrices as they are, other results as the rows of their CSV. matplotlib and pandas are
imported only when needed.
"""

import base64
import io
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from attnscope.errors import InputError
from attnscope.render.files import rows
from attnscope.render.kit.cells import fit
from attnscope.render.kit.numbers import CALLED
from attnscope.render.kit.stage import panel
from attnscope.render.kit.words import model_words, verdict_words
from attnscope.render.look import USUAL, Look
from attnscope.render.saving import PAGE, PICTURES, check_targets, content, picture_suffixes, write
from attnscope.render.sheets import focus_on, sheet_of
from attnscope.render.terminal.sheet import USUAL as USUAL_CELLS
from attnscope.render.terminal.sheet import written
from attnscope.render.web.room import Beside
from attnscope.results import (
    HeadScores,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Result,
)
from attnscope.tokens import Tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from PIL.Image import Image


def text(result: Result, *, width: int | None = None, **looked_at: Any) -> str:
    """The terminal's text of a result, without colour."""
    return written(result, focus_on(result, **looked_at), width)


def plot(result: Result, ax: "Axes | None", *, look: Mapping[str, Any], **looked_at: Any) -> "Axes | Figure":
    """Draw the result on `ax`, or without one as a new figure (`attnscope.render.figure.plot`)."""
    from attnscope.render import figure

    return figure.plot(result, ax, Look(**look), **looked_at)


def save(result: Result, path: str | Path, *, look: Mapping[str, Any], **looked_at: Any) -> Path:
    """Write `result` to `path`, as its suffix says; warns of characters that no font can draw."""
    target, dressed = Path(os.path.expanduser(path)), Look(**look)
    check_targets([target], type(result))
    suffix, focus = target.suffix.lower(), focus_on(result)
    if suffix in PICTURES:
        from attnscope.render import figure

        focus = figure.drawn_focus(result, **looked_at)
    elif dressed != USUAL or any(each is not None for each in looked_at.values()):
        raise InputError(f"{suffix} holds all of the numbers: leave show, query, key, scale and the look out")

    def warn(notice: str) -> None:
        warnings.warn(notice, stacklevel=5)

    write(target, content(result, suffix, focus, dressed, warn))
    return target


_LINE = "font-family:monospace;white-space:pre-wrap;margin:.4em 0 0 0"
_TEXT = "font-family:monospace;white-space:pre;line-height:1.2;overflow-x:auto;margin:0"
MOST_FRAMED = 2_000_000  # bytes of a page that is put into a notebook, which is stored with all it shows
_DPI, _PIXELS = 144, 96  # dots of an inch, and how many pixels a screen makes of it
_MOST_BYTES = 44_000  # of a picture: a third more where it stands in a page
_SHRUNK = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4)  # of its dots, as many as there is room for
_COLOURS, _PHOTO_COLOURS = 64, 256
_WHITE = 252  # of 255: colours at least this light are background
_PHOTOS = (PictureAttention, PictureHeads)  # results whose colours must not be inverted
_TURNED = "{filter:invert(.9) hue-rotate(180deg)}"  # nearly white is not nearly black, which the ground is
_STYLE = (
    ".attnscope{max-width:100%;height:auto}"
    f"@media (prefers-color-scheme:dark){{.attnscope{_TURNED}}}"
    '[data-jp-theme-light="true"] .attnscope,body.vscode-light .attnscope,html[theme="light"] .attnscope'
    "{filter:none}"
    '[data-jp-theme-light="false"] .attnscope,body.vscode-dark .attnscope,html[theme="dark"] .attnscope'
    + _TURNED
)

# a notebook asks for the HTML and for the PNG of one result: it is drawn once
_drawn: WeakKeyDictionary[Result, bytes] = WeakKeyDictionary()


class Page:
    """The interactive page of a result, shown by a notebook where a cell ends with it."""

    def __init__(self, title: str, page: bytes) -> None:
        self._title, self._page = title, page

    def __repr__(self) -> str:
        return f"<page of {self._title}: a notebook shows it, .save('page.html') writes it>"

    def _repr_html_(self) -> str:
        return self._page.decode()


def page(result: Result) -> Page:
    """The page as a fragment; `InputError` where it is too large for a notebook."""
    made = content(result, PAGE, beside=Beside(fragment=True))
    if len(made) > MOST_FRAMED:
        size = f"{len(made) / 1e6:.1f} MB"
        raise InputError(f"its page has {size}, too much for a notebook: .save('page.html') writes it")
    return Page(summary(result).strip("<>"), made)


def png(result: Result) -> bytes | None:
    """PNG of the whole result, on white; None where it has no picture."""
    if not picture_suffixes(type(result)):
        return None
    if result not in _drawn:
        _drawn[result] = _small(content(result, ".png", look=Look(dpi=_DPI)), isinstance(result, _PHOTOS))
    return _drawn[result]


def _small(picture: bytes, photo: bool) -> bytes:
    from PIL import Image as images
    from PIL.PngImagePlugin import PngInfo

    with images.open(io.BytesIO(picture)) as full:
        described = PngInfo()
        for name, told in full.info.items():
            if isinstance(told, str) and isinstance(name, str):
                described.add_itxt(name, told)
        whole, colours = full.convert("RGB"), _PHOTO_COLOURS if photo else _COLOURS
    for share in _SHRUNK:
        sides = round(share * whole.width), round(share * whole.height)
        few = whole.resize(sides, images.Resampling.BOX).quantize(
            colours, images.Quantize.MAXCOVERAGE, kmeans=1, dither=images.Dither.NONE
        )  # fmt: skip
        made = _bytes(few, pnginfo=described, dpi=(share * _DPI, share * _DPI))
        if len(made) <= _MOST_BYTES:
            break
    return made


def _clear(picture: bytes) -> bytes:
    from PIL import Image as images

    with images.open(io.BytesIO(picture)) as few:
        palette = few.getpalette() or []
        colours = [palette[i : i + 3] for i in range(0, len(palette), 3)]
        white = max(range(len(colours)), key=lambda i: min(colours[i]), default=0)
        if not colours or min(colours[white]) < _WHITE:
            return picture
        return _bytes(few, transparency=white, dpi=few.info["dpi"])


def _bytes(picture: "Image", **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True, **options)
    return buffer.getvalue()


def html(result: Result) -> str:
    """One `<div>` for notebooks, with the picture or else the text; all texts are escaped."""
    picture = png(result)
    if picture is None:
        return f'<div><pre style="{_TEXT}">{escape(written(result, width=USUAL_CELLS))}</pre></div>'
    photo = isinstance(result, _PHOTOS)
    encoded = base64.b64encode(picture if photo else _clear(picture)).decode()
    alt, width = escape(summary(result).strip("<>")), _width(picture)
    look = 'style="max-width:100%;height:auto"' if photo else 'class="attnscope"'
    shown = f'<img alt="{alt}" width="{width}" {look} src="data:image/png;base64,{encoded}">'
    line = f'<div style="{_LINE}">{escape(_proof(result))}</div>'
    return f"<div><style>{_STYLE}</style>{shown}{line}</div>"


def _width(picture: bytes) -> int:
    from PIL import Image as images

    with images.open(io.BytesIO(picture)) as shown:
        fine: float = shown.info["dpi"][0]
        return round(shown.width / fine * _PIXELS)


def _proof(result: Result) -> str:
    made = sheet_of(result)
    told = [words for _, words in made.proof] or [made.untouched]
    if not any(told) and result.verdict is not None:
        told = [verdict_words(result.verdict)]
    return " · ".join(each for each in (*told, ".page() is interactive") if each)


_MOST, _MOST_NAME = 150, 40  # cells of all but the verdict, and of one name in it


def summary(result: Result) -> str:
    """One line: `<HeadAttention L3 H11 · encoder self-attention · 11 queries x 11 keys · demo · ✓ ...>`."""
    sheet = sheet_of(result)
    model = [fit(model_words(each), _MOST_NAME) for each in sheet.origins[:1]]
    parts = [fit(sheet.title, 2 * _MOST_NAME), *sheet.summary, *model]
    told = fit(" · ".join(part for part in parts if part), _MOST)
    proved = [] if result.verdict is None else [verdict_words(result.verdict)]
    return f"<{type(result).__name__} {' · '.join([told, *proved])}>"


def to_pandas(result: Result, show: str | None = None) -> "DataFrame":
    """The numbers of a result as a data frame; `show` is a stage of a head, `attrs` has the verdict.

    Raises `InputError` where pandas is not installed.
    """
    try:
        import_module("pandas")
    except ImportError as error:
        needed = "a table needs pandas, which is not installed: pip install 'attnscope[pandas]'"
        raise InputError(needed) from error
    focus = focus_on(result, show)
    made = next((each for kind, each in _FRAMES.items() if isinstance(result, kind)), _rows)
    frame = _stage(result, focus.stage) if isinstance(result, HeadWeights | HeadView) else made(result)
    if result.verdict is not None:
        frame.attrs["verdict"] = result.verdict.value
    return frame


def _stage(result: HeadWeights | HeadView, stage: Any) -> "DataFrame":
    import pandas

    shown = panel(result, stage)
    columns = range(shown.values.shape[1]) if shown.column_tokens is None else unique(shown.column_tokens)
    return pandas.DataFrame(
        shown.values,
        index=pandas.Index(unique(shown.row_tokens), name=shown.row_word),
        columns=pandas.Index(list(columns), name=shown.column_word),
    )


def unique(tokens: Tokens) -> list[str]:
    """Unique labels of tokens; equal ones get their position behind them."""
    count = Counter(tokens.labels)
    whole = zip(tokens.positions, tokens.labels, strict=True)
    return [label if count[label] == 1 else f"{label} ({position})" for position, label in whole]


def _rows(result: Result) -> "DataFrame":
    import pandas

    heading, *lines = rows(result)
    columns = dict(zip(map(str, heading), map(list, zip(*lines, strict=True)), strict=True))
    return pandas.DataFrame(
        {name: each if name.endswith(CALLED) else _numbers(each) for name, each in columns.items()}
    )


def _numbers(column: list[Any]) -> list[Any]:
    try:
        return [each if isinstance(each, int) else float(each if each != "" else "nan") for each in column]
    except ValueError:
        return column


def _overview(result: Overview) -> "DataFrame":
    import pandas

    layers = pandas.Index(result.layers, name="layer")
    heads = pandas.Index(result.heads, name="head")
    each = {
        name: pandas.DataFrame(_values(scores), index=layers, columns=heads)
        for name, scores in result.scores.items()
    }
    return next(iter(each.values())) if len(each) == 1 else pandas.concat(each, axis=1, names=["measure"])


def _values(scores: HeadScores) -> Any:
    if not scores.description.classes:
        return scores.values
    layers, heads = scores.values.shape
    return [[scores.class_of(i, j) for j in range(heads)] for i in range(layers)]


def _picture(result: PictureAttention) -> "DataFrame":
    import pandas

    index, columns = (
        pandas.RangeIndex(size, name=axis)
        for size, axis in zip(result.weights.shape, ("row", "column"), strict=True)
    )
    return pandas.DataFrame(result.weights, index=index, columns=columns)


_FRAMES: dict[type, Callable[[Any], Any]] = {Overview: _overview, PictureAttention: _picture}
