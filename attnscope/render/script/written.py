"""A program of `again` with the figures of one result in it."""

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any

from attnscope.render.script.figures import SCRIPTS, shown
from attnscope.results import Result

_PROGRAMS = Path(__file__).parent / "again"
_EMPTY = "SHOWN: dict[str, Any] = {}"


def as_script(result: Result) -> str:
    """A program that computes the figures of `result` again; `InputError` where that cannot be plain."""
    program = SCRIPTS[type(result)].program
    entries = (f"    {key!r}: {_laid_out(value)},\n" for key, value in shown(result).items())
    common = _source("common").replace(_EMPTY, f"{_EMPTY[:-1]}\n{''.join(entries)}}}")
    return "\n".join([common, "", *_own(_source(program)), ""])


def _source(program: str) -> str:
    return (_PROGRAMS / f"{program}.py").read_text("utf-8")


def _own(source: str) -> Iterator[str]:
    """The lines of a program but its imports, which `common` has; its docstring as a comment."""
    program = ast.parse(source)
    said = ast.get_docstring(program) or ""
    yield from (f"# {line}" for line in said.splitlines())
    imports = (each for each in program.body if isinstance(each, ast.Import | ast.ImportFrom))
    yield from source.splitlines()[max(each.end_lineno or 0 for each in imports) :]


def _laid_out(value: Any) -> str:
    """As a literal of Python, with nothing in it that could steer a terminal."""
    return indent(pformat(_plain(value), width=100, compact=True, sort_dicts=False), " " * 8).lstrip()


def _plain(value: Any) -> Any:
    """The same as lists and numbers of seven digits; None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
