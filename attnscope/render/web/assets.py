"""What is the same in every page: its frame, its style and its modules, put into one script.

A page is one script, so each module becomes a function that hands out what it exports, in the order in which
they import one another; a block that a page does not have is not in its file. The script stands in the page
deflated, a third of its size, as does the style of what it draws; `boot.js` puts both in, and the page's
policy knows the scripts by their hashes.
"""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

import numpy as np

from attnscope.render.kit.palette import HEADS, OUTLINES, PAPER, RAMPS, SIDES, VERDICTS
from attnscope.render.web.blocks import png
from attnscope.results import Verdict

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
    """A file of `page/`."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


@cache
def script(without: frozenset[str] = frozenset()) -> str:
    """All modules as one strict function, each in one of its own; `without` those that it never asks."""
    modules = "".join(
        _enclosed(each) if each not in without else f"const ${each} = {{}};\n" for each in _order("page")
    )
    return f'\n(() => {{\n"use strict";\n{modules}}})();\n'


@cache
def style(fragment: bool = False) -> str:
    """Of what stands there without scripts. In a `fragment` nothing is inherited."""
    own = _styled("frame.css", fragment) + _styled("sheet.css", fragment)
    return f"{_colours()}{own}\n" if not fragment else f"{_colours()}{_WITHIN}{own}{_BORDERED}"


@cache
def look(fragment: bool = False) -> str:
    """The style of what scripts draw."""
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
    """A small matrix with its largest weights one token back, as an address that holds the picture itself."""
    few, shades = 5, [[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in RAMPS["light"]["weight"]]
    cells = [[shades[-1] if i == j + 1 else shades[i * j % 3] for j in range(few)] for i in range(few)]
    pixels = np.kron(np.array(cells, np.uint8), np.ones((6, 6, 1), np.uint8))
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def boot() -> str:
    return f"\n{asset('boot.js')}"


def policy(*scripts: str) -> str:
    """What the page may do: draw, with its own style, and run these scripts."""
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
