"""A program of `again` with the figures of one result in it."""

import ast
import math
import sys
from collections import defaultdict
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any

from attnscope.render.script.figures import script_of, shown
from attnscope.results import Result

_PROGRAMS = Path(__file__).parent / "again"
_EMPTY = "SHOWN: dict[str, Any] = {}"


def as_script(result: Result) -> str:
    """A program that computes the figures of `result` again; `InputError` where that cannot be plain."""
    common, own = (_source(name) for name in ("common", script_of(result).program))
    entries = (f"    {key!r}: {_laid_out(value)},\n" for key, value in shown(result).items())
    given = _body(common).replace(_EMPTY, f"{_EMPTY[:-1]}\n{''.join(entries)}}}")
    said = "".join(f"# {line}".rstrip() + "\n" for line in _said(own).splitlines())
    return f'"""{_said(common)}\n"""\n\n{_imports(common, own)}{given}\n\n{said}{_body(own)}'


def _source(program: str) -> str:
    return (_PROGRAMS / f"{program}.py").read_text("utf-8")


def _said(source: str) -> str:
    return ast.get_docstring(ast.parse(source)) or ""


def _body(source: str) -> str:
    imports = (each for each in ast.parse(source).body if isinstance(each, ast.Import | ast.ImportFrom))
    last = max(each.end_lineno or 0 for each in imports)
    return "".join(source.splitlines(keepends=True)[last:])


def _imports(*sources: str) -> str:
    modules, named = set[str](), defaultdict[str, set[str]](set)
    for each in (each for source in sources for each in ast.parse(source).body):
        if isinstance(each, ast.Import):
            modules.update(alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.module.startswith("attnscope."):
            named[each.module].update(alias.name for alias in each.names)
    lines = [("import", module, f"import {module}\n") for module in modules]
    lines += [("later", name, f"from {name} import {', '.join(sorted(of))}\n") for name, of in named.items()]
    ours = [line for _, name, line in sorted(lines) if name.partition(".")[0] in sys.stdlib_module_names]
    others = [line for _, _, line in sorted(lines) if line not in ours]
    return "".join([*ours, "\n", *others])


def _laid_out(value: Any) -> str:
    return indent(pformat(_plain(value), width=100, compact=True, sort_dicts=False), " " * 8).lstrip()


def _plain(value: Any) -> Any:
    """As lists and numbers of seven digits; None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
