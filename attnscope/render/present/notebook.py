"""A result in a notebook: its `repr` in one line, its picture or else its text, what is proved, and its page.

The picture is small and follows the notebook's theme: what is white is left out of it, and on a dark theme
light and dark change places while hues stay. Nothing is loaded from elsewhere. A page is a fragment: as high
as it is, light or dark as the notebook, and neither knows the other's names and styles.
"""

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from attnscope.errors import InputError
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.look import Look
from attnscope.render.saving import PAGE, content, picture_suffixes
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import USUAL, written
from attnscope.render.web.room import Beside
from attnscope.results import PictureAttention, PictureHeads, Result

if TYPE_CHECKING:
    from PIL.Image import Image
from attnscope.render.kit.cells import fit
from attnscope.render.kit.words.header import model_words

_LINE = "font-family:monospace;white-space:pre-wrap;margin:.4em 0 0 0"
_TEXT = "font-family:monospace;white-space:pre;line-height:1.2;overflow-x:auto;margin:0"
MOST_FRAMED = 2_000_000  # bytes of a page that is put into a notebook, which is stored with all it shows
_DPI, _PIXELS = 144, 96  # dots of an inch, and how many pixels a screen makes of it
_MOST_BYTES = 44_000  # of a picture: a third more where it stands in a page
_SHRUNK = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4)  # of its dots, as many as there is room for
_COLOURS, _PHOTO_COLOURS = 64, 256
_WHITE = 252  # of 255: a colour that is no darker is the page
_PHOTOS = (PictureAttention, PictureHeads)  # whose own light and dark are meant
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
    """The interactive page of a result, for a notebook, which shows it where a cell ends with it."""

    def __init__(self, title: str, page: bytes) -> None:
        self._title, self._page = title, page

    def __repr__(self) -> str:
        return f"<page of {self._title}: a notebook shows it, .save('page.html') writes it>"

    def _repr_html_(self) -> str:
        return self._page.decode()


def page(result: Result) -> Page:
    """The page as a fragment; `InputError` for one that a notebook should not hold."""
    made = content(result, PAGE, beside=Beside(fragment=True))
    if len(made) > MOST_FRAMED:
        size = f"{len(made) / 1e6:.1f} MB"
        raise InputError(f"its page has {size}, too much for a notebook: .save('page.html') writes it")
    return Page(summary(result).strip("<>"), made)


def png(result: Result) -> bytes | None:
    """The picture of the whole result, on white; None where it has none."""
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
    """One `<div>`; every text of the model or the user is escaped."""
    picture = png(result)
    if picture is None:
        return f'<div><pre style="{_TEXT}">{escape(written(result, width=USUAL))}</pre></div>'
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
    """`<HeadAttention L3 H11 · encoder self-attention · 11 queries x 11 keys · demo · ✓ certified>`."""
    sheet = sheet_of(result)
    model = [fit(model_words(each), _MOST_NAME) for each in sheet.origins[:1]]
    parts = [fit(sheet.title, 2 * _MOST_NAME), *sheet.summary, *model]
    told = fit(" · ".join(part for part in parts if part), _MOST)
    proved = [] if result.verdict is None else [verdict_words(result.verdict)]
    return f"<{type(result).__name__} {' · '.join([told, *proved])}>"
