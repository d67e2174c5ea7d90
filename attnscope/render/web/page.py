"""One HTML file that shows a result in any browser, from disk and without network.

The page's content security policy allows no requests, and only its own scripts, by hash. Text of the model or
the user is escaped or data, never markup.

All modules are joined into one script, each as a function that returns its exports, in import order; modules
that a page does not need are left out. Script and styles are stored deflated, and `boot.js` unpacks them.
"""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.render.files import rows as rows_of
from attnscope.render.kit.numbers import CALLED, percent
from attnscope.render.kit.palette import HEADS, OUTLINES, PAPER, RAMPS, SIDES, VERDICTS
from attnscope.render.kit.words import DISTRUST, own_name, verdict_words
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import WHOLE, Focus, proof_of, sheet_of
from attnscope.render.sheets.media import Original
from attnscope.render.web.blocks import Blocks, as_json, escape, original, paragraph, png
from attnscope.render.web.document import Document, document, weights_view
from attnscope.render.web.ranking import linked
from attnscope.render.web.room import HARD_BYTES, KEPT, NOTHING, Beside, room_for, too_large
from attnscope.render.web.sheet import section
from attnscope.results import HeadView, HeadWeights, PictureAttention, Provenance, Result, Verdict
from attnscope.tokens import Tokens
from attnscope.version import __version__

_MOST_CELLS = 60_000  # of the table of numbers
_TABLE = re.compile(r"<h2[^>]*>.*?</h2>|<table>.*?</table>\n?", re.DOTALL)
_BLANK = re.compile(r"\n([ \t]*)(?=\n)")  # lines at which markup ends in Markdown
# what a table needs no more where no style reaches it: drawings, looks, names and links of the page around it
_DRESSED = re.compile(
    r"<svg.*?</svg>|<(?:details|figure).*?</(?:details|figure)>|</?a\b[^>]*>"
    r'| (?:style|title|class|id|aria-label)="[^"]*"',
    re.DOTALL,
)
_LONGEST_COMMAND = 400  # that stands at the foot, too


def as_page(result: Result, focus: Focus = WHOLE, beside: Beside = NOTHING) -> bytes:
    """The page, or a fragment of one; `InputError` where it is larger than `HARD_BYTES`."""
    made = document(result, focus, beside)
    told, sheet = _told(result, made, beside), sheet_of(result, focus)
    code, failed, heading = script(_unused(made)), result.verdict is Verdict.FAILED, made.heading
    again = f"Made again by: {told['command']}" if 0 < len(told["command"]) <= _LONGEST_COMMAND else ""
    foot = (f"attnscope {__version__} · {told['encoding']}", *told["small"], again)
    proved = "" if result.verdict is None else verdict_words(result.verdict)
    if result.verdict is not None and sheet.proof:
        proved = " · ".join(words for _, words in sheet.proof)
    answer = sheet.answer if made.told is None else made.told.sentence
    around = {
        "kind": escape(type(result).__name__),
        "policy": policy(code, boot()),
        "version": __version__,
        "title": escape(f"{heading if made.told is None else f'{made.told.title} · {heading}'} · attnscope"),
        "description": escape(html.unescape(re.sub(r"<[^>]+>", "", answer))),
        "proof": escape(told["proof"]),
        "icon": icon(),
        "style": style(beside.fragment),
        "boot": boot(),
    }
    inside = {
        "main": "div" if beside.fragment else "main",
        "alarm": f'<p class="alarm" role="alert">✗ The certificate FAILED: {DISTRUST}.</p>\n'
        if failed
        else "",
        "heading": escape(told["heading"]),
        "read": escape(told["read"]),
        "verdict": "" if result.verdict is None else result.verdict.value,
        "verdict_words": escape(proved),
        "answer": linked(sheet.answer or made.heading, made.first == "sheet" and bool(made.readings))
        if made.told is None
        else made.told.sentence,
        "said": ' class="said"' if made.told is None else "",
        "why": "" if made.told is None else f'<p id="why">{made.told.why}</p>\n',
        "proof": escape(told["proof"]),
        "foot": "".join(paragraph(each, "told") for each in foot),
        "sheet": _section(result, sheet, made, beside),
        "document": as_json(told),
        "blocks": made.blocks.elements(),
        "code": Blocks.pack(code.encode()),
        "look": Blocks.pack(look(beside.fragment).encode()),
    }
    around["tables"] = "".join(_TABLE.findall(_DRESSED.sub("", inside["sheet"]))) if beside.fragment else ""
    around["inside"] = _filled(asset("inside.html").rstrip(), inside)
    text = _filled(asset("fragment.html" if beside.fragment else "page.html"), around)
    page = (_BLANK.sub(r"&#10;\1", text) if beside.fragment else text).encode()
    if len(page) > HARD_BYTES:
        heads = sum(len(each["layers"]) * len(each["heads"]) for each in made.readings)
        tokens = max((len((each["keys"] or each["queries"])["names"]) for each in made.readings), default=0)
        fewer = int(heads * HARD_BYTES / len(page))
        instead = room_for(fewer) if fewer else "shorten the text"
        raise InputError(too_large(f"{len(page) / 1e6:.1f}", heads, tokens, instead))
    return page


def _section(result: Result, sheet: Sheet, made: Document, beside: Beside) -> str:
    """Markup of the result's sheet; without blocks for a head, whose matrix the page draws itself."""
    blocks = not isinstance(result, HeadWeights | HeadView)
    after = original(Original(beside.laid.picture)) if isinstance(beside.laid, PictureAttention) else ""
    return section(sheet, answer=made.told is not None, blocks=blocks, after=after, leads=bool(made.readings))


def _unused(made: Document) -> frozenset[str]:
    heads = max((len(each["layers"]) * len(each["heads"]) for each in made.readings), default=0)
    vectors = any(full["q"] for each in made.readings for full in each["full"].values())
    used = {
        "both": made.both,
        "board": made.picture or made.sound,
        "map": made.map,
        "score": vectors,
        "grid": heads > 1,
        **dict.fromkeys(("text", "lists", "matrix", "lines"), heads),
    }
    return frozenset(name for name, has in used.items() if not has)


def _filled(frame: str, parts: dict[str, str]) -> str:
    """The frame with each `{{name}}` replaced once; replacements are not searched again."""
    pieces = frame.split("{{")
    named = (piece.split("}}", 1) for piece in pieces[1:])
    return pieces[0] + "".join(parts[name] + rest for name, rest in named)


def _told(result: Result, made: Document, beside: Beside) -> dict[str, Any]:
    rows, every = _rows(result)
    where = sheet_of(result).origins
    opening = {"view": "numbers" if rows else "proof", **made.opening}
    return {
        "heading": made.heading,
        "read": _read(result),
        "verdict": "none" if result.verdict is None else result.verdict.value,
        "verdicts": _verdicts(result),
        "proof": proof_of(result),
        "provenance": [
            [f"Where the numbers come from{_of(where, i)}", _source(each)] for i, each in enumerate(where)
        ],
        "small": [
            part
            for part in (
                proof_of(result),
                " · ".join(dict.fromkeys(own_name(each.model) + " " + each.source for each in where)),
            )
            if part
        ],
        "command": beside.command or (made.readings[0]["command"] if made.readings else ""),
        "encoding": _encoding(made),
        "open": opening,
        "first": made.first,
        "apart": weights_view(made) == "text",
        "readings": made.readings,
        "map": made.map,
        "below": made.below,
        "picture": made.picture,
        "sound": made.sound,
        "both": made.both,
        "opener": made.opener,
        "says": made.says,
        "rows": made.blocks.json(rows) if rows else None,
        "every_row": every,
    }


def _read(result: Any) -> str:
    if both := getattr(result, "sides", ()):
        return "   |   ".join(dict.fromkeys(_read(side.head) for side in both))
    sides = [
        each
        for name in ("query_tokens", "key_tokens", "tokens")
        if isinstance(each := getattr(_holder(result), name, None), Tokens)
    ]
    return "   |   ".join(dict.fromkeys(f"“{each.sentence}”" for each in sides if each.texts))


def _holder(result: Any) -> Any:
    for name in ("head", "overview", "a"):
        inside = getattr(result, name, None)
        if inside is not None and not isinstance(inside, int):
            return _holder(inside)
    return result


def _source(origin: Provenance) -> list[list[str]]:
    versions = " ".join(f"{name} {version}" for name, version in sorted(origin.versions.items()))
    told = {
        "model": own_name(origin.model),
        "architecture": origin.architecture,
        "weights": origin.digest or origin.source,
        "revision": origin.revision or "",
        "device": f"{origin.device}, {origin.dtype}",
        "kernel": origin.kernel,
        "read by": origin.route,
        "versions": versions,
        "token ids": " ".join(map(str, origin.token_ids)),
    }
    return [[name, value] for name, value in told.items() if value]


def _of(where: Sequence[Provenance], i: int) -> str:
    return f", side {'ab'[i]}" if len(where) > 1 else ""


def _verdicts(result: Any) -> list[list[str]] | None:
    rows = getattr(result, "verdicts", None)
    return None if rows is None else [[each.value for each in row] for row in rows]


def _rows(result: Result) -> tuple[list[list[object]], int]:
    """CSV rows as far as a page has room, and their full number; none for matrices."""
    if isinstance(result, HeadWeights | HeadView):
        return [], 0
    heading, *rows = rows_of(result)
    named = [str(each).endswith(CALLED) for each in heading]
    kept = rows[: _MOST_CELLS // len(heading)]
    cells = ([str(one) if name else _cell(one) for one, name in zip_longest(row, named)] for row in kept)
    return [list(map(str, heading)), *cells], len(rows)


def _cell(cell: object) -> object:
    if isinstance(cell, str):
        try:
            return float(f"{float(cell):.7g}") if cell and not cell.strip("0123456789.e+-") else cell
        except ValueError:
            return cell
    return cell if isinstance(cell, int | float) else str(cell)


def _encoding(made: Document) -> str:
    depths = {each["depth"] for each in made.readings}
    if 2 in depths:
        return (
            "weights are held in 16 bits: within 2.5e-5 of the exact numbers, and equal to them in all four "
            "digits that are shown"
        )
    if 1 in depths:
        exact = sorted(
            {name for each in made.readings for name, own in each["full"].items() if "planes" in own}
        )
        but = f"; those of {', '.join(exact)} are equal to them in all four digits" if exact else ""
        return (
            "of so many heads and tokens weights are held in 8 bits, within .0034 of the exact numbers, and "
            f"shown with two digits{but}{_kept(made)}"
        )
    return "weights are held in single precision" if depths else "the numbers are those of the result"


def _kept(made: Document) -> str:
    kept = [each["kept"]["share"] for each in made.readings if each.get("kept")]
    shares = [share for layers in kept for heads in layers for share in heads]
    if not shares:
        return ""
    ends = f"{percent(min(shares))} to {percent(max(shares))}"
    return f"; of each row the {KEPT} largest are kept, {ends} of a head's weight, and the others left out"


_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_COMMENT = re.compile(r"^\s*(/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_DARK = '[data-theme="dark"] .page, .page[data-theme="dark"]'
_INLINE = re.compile(r"/\*\* @(?:type|param) .*? \*/ ?")
_EXPORT = re.compile(r"^export ((?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)
_WITHIN = ":host { display: block; container-type: inline-size; } .page { all: initial; display: block; }\n"
_BORDERED = ".page { border: 1px solid var(--rule); border-radius: 6px; } .page:focus { outline: none; }\n"


@cache
def asset(name: str) -> str:
    """Text of a file in `page/`."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


@cache
def script(without: frozenset[str] = frozenset()) -> str:
    """All JavaScript modules as one strict function; those in `without` are empty."""
    modules = "".join(
        _enclosed(each) if each not in without else f"const ${each} = {{}};\n" for each in _order("page")
    )
    return f'\n(() => {{\n"use strict";\n{modules}}})();\n'


@cache
def style(fragment: bool = False) -> str:
    """CSS of the parts that need no script; a `fragment` inherits nothing from its page."""
    own = _styled("frame.css", fragment) + _styled("sheet.css", fragment)
    return f"{_colours()}{own}\n" if not fragment else f"{_colours()}{_WITHIN}{own}{_BORDERED}"


@cache
def look(fragment: bool = False) -> str:
    """CSS of the parts that scripts draw."""
    return _styled("page.css", fragment)


def _styled(name: str, fragment: bool) -> str:
    told = asset(name)
    if fragment:
        told = re.sub(r"@media screen and (\((?:min|max)-width: \d+px\))", r"@container \1", told)
    return re.sub(r"\s*([{};,]|: )\s*", lambda found: found[1].strip(), told)


def _colours() -> str:
    ramps = {
        f"{name}-{ground}": " ".join(anchors)
        for ground, named in RAMPS.items()
        for name, anchors in named.items()
    }
    fixed = {
        "asks": "var(--query)",
        "heads": " ".join(HEADS),
        "alarm": OUTLINES[Verdict.FAILED],
        "warning": "#6b5200",
        **ramps,
    }
    told = {".page": fixed, _DARK: {}}
    for selector, ground in zip(told, PAPER, strict=True):
        verdicts = {verdict.value: colour for verdict, colour in VERDICTS[ground].items()}
        told[selector] |= PAPER[ground] | SIDES[ground] | verdicts
    return "".join(
        f"{selector}{{{';'.join(f'--{name}:{value}' for name, value in named.items())}}}\n"
        for selector, named in told.items()
    )


@cache
def icon() -> str:
    """Data URL of the icon: a small matrix with its largest weights one token back."""
    few, shades = 5, [[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in RAMPS["light"]["weight"]]
    cells = [[shades[-1] if i == j + 1 else shades[i * j % 3] for j in range(few)] for i in range(few)]
    pixels = np.kron(np.array(cells, np.uint8), np.ones((6, 6, 1), np.uint8))
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def boot() -> str:
    return f"\n{asset('boot.js')}"


def policy(*scripts: str) -> str:
    """Content security policy of the page: its own style, images and sounds, and only these scripts."""
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _order(name: str, before: tuple[str, ...] = ()) -> tuple[str, ...]:
    for _, each in _IMPORT.findall(asset(f"{name}.js")):
        before = before if each in before else _order(each, before)
    return before if name in before else (*before, name)


def _enclosed(name: str) -> str:
    module = asset(f"{name}.js")
    told = ", ".join(exported for _, exported in _EXPORT.findall(module))
    body = _IMPORT.sub(r"const \1 = $\2;", _EXPORT.sub(r"\1", module))
    without = _INDENT.sub("", _COMMENT.sub("", _INLINE.sub("", body)))
    return f"const ${name} = (() => {{\n{without}return {{ {told} }};\n}})();\n"
