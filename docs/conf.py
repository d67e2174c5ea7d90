"""How Sphinx makes a site of these pages, which are plain Markdown wherever they are read.

    sphinx-build -W --keep-going docs outputs/site

The home page is the table of contents: what it links to under a heading stands in the menu under that
heading, and a page that it does not link to is an error. A link to a file that is no page of the site, such
as the package's sources, becomes one to the repository.
"""

import os
import re
import sys
import tomllib
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import get_args, get_type_hints

from sphinx.util.typing import stringify_annotation

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # whose docstrings the reference of Python is
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
SOURCES = f"{PROJECT['urls']['Homepage']}/blob/main/"
from attnscope import results  # noqa: E402
from attnscope.results.stored.schema import said_of  # noqa: E402

project = PROJECT["name"]
author = copyright = PROJECT["authors"][0]["name"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4  # as code hosts give to headings
default_role = "py:obj"  # `name` in a docstring is code, and a link where it has a name of the reference
add_module_names = False
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    "inherited-members": "Presented, Exception, Enum, StrEnum, str, object",
    "exclude-members": "check_parts, derived, npz_columns, for_readers",
}
html_theme = "furo"
html_title = "attnscope"
html_copy_source = html_show_sphinx = False
smartquotes = False

LINK = re.compile(r"(?<=\]\()([^)#:]+)(?=[)#])")


def outside(page: Path, text: str) -> str:
    """`text` of `page` with links that leave the site, or name a folder, pointed to the repository."""

    def pointed(link: re.Match[str]) -> str:
        file = Path(os.path.normpath(page.parent / link[1]))
        if file.is_relative_to(HERE) and not file.is_dir():
            return link[1]
        return SOURCES + file.relative_to(HERE.parent).as_posix()

    return LINK.sub(pointed, text)


def menu(home: str) -> str:
    """The tables of contents that the links of the home page make, one for each of its headings."""
    tables = []
    for part in home.split("\n## ")[1:]:
        heading, _, rest = part.partition("\n")
        pages = [link for link in LINK.findall(rest) if link.endswith(".md")]
        tables.append("\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"]))
    return "\n\n".join(tables)


def part(kind: type) -> str:
    """Where the reference has a class of a part."""
    return f"```{{eval-rst}}\n.. autoclass:: {kind.__module__}.{kind.__name__}\n```\n"


def parts() -> list[type]:
    """The classes that fields of results have as their types and that have no public name of their own."""
    found: dict[type, None] = {}
    asked: list[object] = [getattr(results, name) for name in results.__all__]
    while asked:
        kind = asked.pop()
        asked += get_args(kind)
        if isinstance(kind, type) and kind.__module__.startswith("attnscope") and kind not in found:
            found[kind] = None
            asked += get_type_hints(kind).values() if is_dataclass(kind) else ()
    public = {getattr(results, name) for name in results.__all__} | {results.Result}
    return sorted(found.keys() - public, key=lambda kind: (kind.__name__, kind.__module__))


def read(app: object, name: str, source: list[str]) -> None:
    """What Sphinx reads of the page `name`, changed in place."""
    text = outside(HERE / f"{name}.md", source[0]).replace("<!-- parts -->", "\n".join(map(part, parts())))
    source[0] = f"{text}\n\n{menu(source[0])}\n" if name == "index" else text


def styled(app: object, name: str, template: str, context: dict[str, str], tree: object) -> None:
    """A command that is longer than its block goes on in the next line; outputs are narrower."""
    wrapped = "<style>div.highlight pre {white-space: pre-wrap}</style>"
    context["metatags"] = context.get("metatags", "") + wrapped


def signed(
    app: object, what: str, name: str, member: object, options: object, *signature: str | None
) -> tuple[str, None] | None:
    """How `name` is called; nobody makes an object of these classes but the package."""
    return ("", None) if what in ("class", "exception") and signature[0] is not None else None


def said(app: object, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """The fields of a dataclass and the members of a choice, behind what their class says of itself."""
    if isinstance(member, type) and is_dataclass(member):
        hints = get_type_hints(member)
        for each in fields(member):
            typed = stringify_annotation(hints[each.name], "smart")
            about = said_of(member, each.name)
            lines += ["", f".. attribute:: {each.name}", f"   :type: {typed}", "", f"   {about}"]
    if isinstance(member, type) and issubclass(member, Enum):
        for each in member:
            lines += ["", f".. attribute:: {each.name}", f"   :value: {each.value!r}"]


def setup(app: "object") -> None:
    """Sphinx asks here what is to be done when."""
    app.connect("autodoc-process-signature", signed)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", said)  # type: ignore[attr-defined]
    app.connect("source-read", read)  # type: ignore[attr-defined]
    app.connect("html-page-context", styled)  # type: ignore[attr-defined]
