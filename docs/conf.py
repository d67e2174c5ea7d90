"""How Sphinx makes a site of these pages, which are plain Markdown wherever they are read.

    sphinx-build -W --keep-going docs outputs/site

The home page is the table of contents: what it links to under a heading stands in the menu under that
heading, and a page that it does not link to is an error. A link to a file that is no page of the site, such
as the package's sources, becomes one to the repository.
"""

import os
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
SOURCES = f"{PROJECT['urls']['Homepage']}/blob/main/"

project = PROJECT["name"]
author = copyright = PROJECT["authors"][0]["name"]
extensions = ["myst_parser"]
myst_heading_anchors = 4  # as code hosts give to headings
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


def read(app: object, name: str, source: list[str]) -> None:
    """What Sphinx reads of the page `name`, changed in place."""
    text = outside(HERE / f"{name}.md", source[0])
    source[0] = f"{text}\n\n{menu(source[0])}\n" if name == "index" else text


def styled(app: object, name: str, template: str, context: dict[str, str], tree: object) -> None:
    """A command that is longer than its block goes on in the next line; outputs are narrower."""
    wrapped = "<style>div.highlight pre {white-space: pre-wrap}</style>"
    context["metatags"] = context.get("metatags", "") + wrapped


def setup(app: "object") -> None:
    """Sphinx asks here what is to be done when."""
    app.connect("source-read", read)  # type: ignore[attr-defined]
    app.connect("html-page-context", styled)  # type: ignore[attr-defined]
