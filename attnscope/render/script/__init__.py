"""A result as a Python script that recomputes its figures with torch and transformers alone.

Scripts are joined from two complete Python files, which are linted: `again`, with an empty `SHOWN`, and
`head` or a verb's own. Their `SHOWN` is filled with the result's data; nothing of them runs here.
"""

import ast
import math
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any

import numpy as np

from attnscope.demo import FOLDERS
from attnscope.errors import InputError
from attnscope.register import kind_of, registered, there
from attnscope.results import HeadWeights, Kind, Provenance, Result
from attnscope.results.heads import MEAN
from attnscope.tokens import Tokens

_MOST = 2048  # weights of a head: all of short texts, of longer ones the largest of every query
EXACT = ("float32", "float64")
_WEIGHTS, NATS = 1e-5, 1e-4  # how far a weight may lie off in these types, and a log probability
COARSE = 2e-2  # and either in others
Told = dict[str, Any]


def shown(result: Result) -> Told:
    """Data for a result's script; `InputError` where plain code cannot recompute its figures."""
    kind = kind_of(type(result))
    if kind is None and isinstance(result, HeadWeights):
        return _head(result)
    if kind is None or not kind.script:
        verbs = [
            name for name, verb in registered().items() if any(each.script for each in verb.kinds.values())
        ]
        there_are = f"there is one of one head of a text, and of {', '.join(verbs)}"
        raise InputError(f"no script: {why_none(type(result)) or there_are}")
    told: Told = there(kind.script)(result)
    return told


def has_script(kind: type) -> bool:
    """True where results of this class have a script."""
    of_verb = kind_of(kind)
    return issubclass(kind, HeadWeights) if of_verb is None else bool(of_verb.script)


def why_none(kind: type) -> str:
    """Reason why this kind of result has no script; empty where none is given."""
    of_verb = kind_of(kind)
    return "" if of_verb is None else of_verb.no_script


def of_model(origin: Provenance, tower: str) -> Told:
    if origin.adapter not in (None, "none"):
        raise InputError("no script: an adapter was put into the model")
    if tower:
        raise InputError(f"no script: {tower} is one of several parts of its model that attend")
    return {
        "model": None if origin.demo else origin.model,
        "demo": FOLDERS.get(origin.model, ""),
        "revision": origin.revision,
        "digest": origin.digest,
        "part": origin.part,
        "architecture": origin.architecture,
        "dtype": origin.dtype,
        "versions": origin.versions,
        "allowed": _WEIGHTS if origin.dtype in EXACT else COARSE,
    }


def of_run(origin: Provenance, tokens: Tokens, kind: Kind, tower: str) -> Told:
    if not origin.inputs:
        raise InputError("no script: what the model read is no text alone, or was read piece by piece")
    read = {"text": tokens.sentence, "inputs": origin.inputs, "kind": kind.value}
    return of_model(origin, tower) | read


def _head(result: HeadWeights) -> Told:
    if result.head == MEAN:
        raise InputError("no script: it is a mean over heads")
    if result.blocks > 1:
        raise InputError("no script: its layer attends in windows")
    queries, keys = result.query_tokens, result.key_tokens
    most = max(1, _MOST // len(queries))
    links = [
        (float(result.weights[i, j]), queries.positions[i], keys.positions[int(j)])
        for i in np.flatnonzero(result.answered).tolist()
        for j in np.argsort(-result.weights[i], kind="stable")[:most]
    ]
    links.sort(key=lambda link: (-link[0], link[1:]))
    return of_run(result.provenance, queries, result.kind, result.tower) | {
        "layer": result.layer,
        "head": result.head,
        "queries": names_of(queries),
        "keys": names_of(keys),
        "weights": [(query, key, weight) for weight, query, key in links],
    }


def names_of(tokens: Tokens) -> list[str]:
    names = dict(zip(tokens.positions, tokens.names, strict=True))
    return [names.get(position, "") for position in range(1 + max(names, default=-1))]


_COMMON, _HEAD = f"{__package__}.again", f"{__package__}.head"


_EMPTY = "SHOWN: dict[str, Any] = {}"


def as_script(result: Result) -> str:
    """A script that recomputes the figures of `result`; `InputError` where plain code cannot."""
    kind, told = kind_of(type(result)), shown(result)
    common, own = (_source(module) for module in (_COMMON, _HEAD if kind is None else kind.again))
    entries = (f"    {key!r}: {_laid_out(value)},\n" for key, value in told.items())
    given = _body(common).replace(_EMPTY, f"{_EMPTY[:-1]}\n{''.join(entries)}}}")
    said = "".join(f"# {line}".rstrip() + "\n" for line in _said(own).splitlines())
    return f'"""{_said(common)}\n"""\n\n{_imports(common, own)}{given}\n\n{said}{_body(own)}'


def _source(module: str) -> str:
    return Path(str(getattr(find_spec(module), "origin", None))).read_text("utf-8")


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
    """`value` as lists and floats of seven digits; None for NaN and infinity."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
