"""What of a result a program of `again` is told, and the program with that in it: where the figures come
from, and the figures themselves.
"""

import ast
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from attnscope.demo import FOLDERS
from attnscope.errors import InputError
from attnscope.results import (
    Ablation,
    Composition,
    Contributions,
    Explanation,
    Finding,
    Flow,
    HeadAttention,
    HeadWeights,
    Kind,
    Provenance,
    Result,
    Special,
    Why,
)
from attnscope.results.claims.composition import STRONGEST
from attnscope.results.claims.effect import Asks, Measured, Method
from attnscope.results.heads import MEAN
from attnscope.tokens import Tokens

_MOST = 2048  # weights of a head: all of short texts, of longer ones the largest of every query
_EXACT = ("float32", "float64")
_WEIGHTS, _NATS = 1e-5, 1e-4  # how far a weight may lie off in these types, and a log probability
_COARSE = 2e-2  # and either in others
Told = dict[str, Any]


class Script(NamedTuple):
    """The program for one kind of result, and what it is told."""

    program: str
    told: Callable[[Any], Told]


def shown(result: Result) -> Told:
    """All that the program of a result is told; `InputError` where its figures cannot be computed plainly."""
    return script_of(result).told(result)


def script_of(result: Result) -> Script:
    """The program of a result; `InputError` where there is none of its kind."""
    if type(result) not in SCRIPTS:
        raise InputError(f"no script: {why_none(type(result)) or _OF}")
    return SCRIPTS[type(result)]


def why_none(kind: type) -> str:
    """Why there is none of this kind of result; empty where nothing more is to be said of it."""
    return _NONE.get(kind, "")


def _loaded(origin: Provenance, tower: str) -> Told:
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
        "allowed": _WEIGHTS if origin.dtype in _EXACT else _COARSE,
    }


def _run(origin: Provenance, tokens: Tokens, kind: Kind, tower: str) -> Told:
    if not origin.inputs:
        raise InputError("no script: what the model read is no text alone, or was read piece by piece")
    read = {"text": tokens.sentence, "inputs": origin.inputs, "kind": kind.value}
    return _loaded(origin, tower) | read


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
    return _run(result.provenance, queries, result.kind, result.tower) | {
        "layer": result.layer,
        "head": result.head,
        "queries": _names(queries),
        "keys": _names(keys),
        "weights": [(query, key, weight) for weight, query, key in links],
    }


def _finding(result: Finding) -> Told:
    controls = result.controls
    if result.by.is_long:
        raise InputError(f"no script: its rows are {result.by.several}, and a script reads tokens or words")
    if result.by.joins and result.special is not Special.SHOW:
        raise InputError("no script: its tokens are joined to words, and special ones left out")
    told = _run(result.provenance, result.query_tokens, result.kind, result.tower)
    sides = (result.query_tokens, result.key_tokens)
    queries, keys = (_pieces(tokens, result, told["inputs"]) for tokens in sides)
    places = [(result.layers[i], result.heads[j], i, j) for i, j in result.ranking]
    return told | {
        "queries": queries,
        "keys": keys,
        "renormalised": result.special is Special.RENORMALISE,
        "links": result.links.tolist(),
        "like": result.question.like,
        "smaller is better": result.smaller_is_better,
        "controls": controls.ids.tolist(),
        "exchanged": controls.input,
        "heads": [
            (layer, head, *(float(each[i, j]) for each in (result.weights, controls.mean, controls.below)))
            for layer, head, i, j in places
        ],
    }


def _ablation(result: Ablation) -> Told:
    if result.method is Method.LINK:
        raise InputError("no script: a link is cut within the softmax, where no module can be told to")
    if result.path is not None:
        raise InputError("no script: in a program a change comes to everything, and not along one path")
    if result.places:
        raise InputError("no script: only heads are taken away in a program, at all tokens")
    if result.measured is not Measured.CHANCE:
        raise InputError(f"no script: a program measures probabilities, no {result.measured}")
    if result.answer.asks is Asks.SPAN:
        raise InputError("no script: a program reads one row of scores, and the ends of a span stand in two")
    told = _run(result.provenance, result.tokens, result.kind, result.tower)
    answer, group = result.answer, result.group
    first = answer.position
    if first is None:  # what a decoder writes ends where its input does, behind what it was given
        written = result.provenance.inputs.get("decoder_input_ids", ())
        first = max(len(written) - 1 - len(answer.ids), 0)
    rows = list(range(first, first + len(answer.ids)))
    rows = rows if answer.asks is Asks.WRITTEN or answer.position is not None else []
    texts: list[dict[str, Any]] = [
        {side.input: side.ids[i % len(side.ids)].tolist() for side in result.mean_over}
        for i in range(max((len(side.ids) for side in result.mean_over), default=0))
    ]
    if result.other is not None:
        texts = [{"input_ids": result.other.ids}]
    return told | {
        "allowed": max(_NATS if result.provenance.dtype in _EXACT else _COARSE, 4 * result.floor.rounding),
        "modules": result.modules,
        "texts": texts,
        "rows": rows,
        "answer": answer.ids,
        "said": answer.text,
        "probability": answer.probability,
        "heads": [(each.layer, each.head, each.change, each.kl) for each in result.heads],
        "random heads": [(each.layer, each.head, each.change) for each in result.floor.random],
        "group": [] if group is None else group.heads,
        "group change": None if group is None else group.effect.change,
        "drawn": [] if group is None else group.drawn,
        "drawn median": None if group is None else group.typical,
    }


def _flow(result: Flow) -> Told:
    ablated = result.ablated
    if ablated is None:
        raise InputError(f"no script: nothing was replaced: {result.reason}")
    if result.query is None:
        raise InputError("no script: none computes a pooled vector again")
    if result.by.joins:
        raise InputError(f"no script: it is by {result.by.several}, and a script follows tokens")
    if result.query_span:
        raise InputError("no script: it is from several tokens, and a script goes back from one")
    if ablated.against:
        raise InputError("no script: it is of a lead, and a script tells what one answer loses")
    if len(ablated.answer_ids) > 1:
        raise InputError(
            "no script: its answer has several tokens, and a script tells what one of them loses"
        )
    told = _run(result.provenance, result.tokens, result.kind, result.tower)
    places = np.flatnonzero(~np.isnan(ablated.effects)).tolist()
    return told | {
        "allowed": _NATS if result.provenance.dtype in _EXACT else _COARSE,
        "layers": len(result.layers),
        "heads": result.heads,
        "query": result.query,
        "tokens": _names(result.tokens),
        "rollout": result.rollout[-1].tolist(),
        "replaced in": ablated.input,
        "replacement": ablated.replacement,
        "replacement id": ablated.replacement_id,
        "said": ablated.answer,
        "answer": next(iter(ablated.answer_ids), None),
        "probability": ablated.probability,
        "effects": [(place, float(ablated.effects[place])) for place in places],
    }


def _composition(result: Composition) -> Told:
    pairs = [pair for through in result.through for pair in result.ranked(through, most=STRONGEST)]
    layers = {layer for pair in pairs for layer in (pair.early[0], pair.late[0])}
    between = {(pair.early[0], pair.late[0], pair.through) for pair in pairs}
    return _loaded(result.provenance, result.tower) | {
        "norms": [(each.module, each.weight, each.one, each.centred) for each in result.norms],
        "matrices": {
            f"{each.side} of L{each.layer}": (each.module, each.firsts, each.size, each.reader)
            for each in result.matrices
            if each.layer in layers
        },
        "ways": {
            f"L{each.early} to {each.through.value} of L{each.late}": each.norms
            for each in result.ways
            if (each.early, each.late, each.through) in between
        },
        "hidden": result.hidden,
        "draws": result.draws,
        "seed": result.seed,
        "pairs": [
            (*pair.early, *pair.late, pair.through.value, pair.score, pair.chance, pair.below)
            for pair in pairs
        ],
    }


def _pieces(tokens: Tokens, result: Finding, inputs: dict[str, tuple[int, ...]]) -> list[list[int]]:
    starts, asked = list(tokens.positions), result.question
    if not result.by.joins:
        sides = {"queries": asked.query_span, "keys": asked.key_span}
        if result.kind is Kind.CROSS:
            del sides["keys" if tokens is result.query_tokens else "queries"]
        named = {span[0]: list(span) for span in sides.values() if span}
        return [named.get(start, [start]) for start in starts]
    own = tokens is result.query_tokens and result.kind is not Kind.ENCODER
    read = inputs.get("decoder_input_ids" if own else "input_ids", inputs["input_ids"])
    return [list(range(*ends)) for ends in pairwise([*starts, len(read)])]


def _names(tokens: Tokens) -> list[str]:
    names = dict(zip(tokens.positions, tokens.names, strict=True))
    return [names.get(position, "") for position in range(1 + max(names, default=-1))]


_APART = "its sum needs every operation of the run cut into parts, which no plain program does"
_OF = "there is one of one head of a text, and of find, flow, ablate, compose"
_NONE: dict[type, str] = {
    Why: _APART,
    Contributions: f"{_APART}; ablate --answer has one of what is lost without heads",
    Explanation: "it is several questions: find, ablate, flow and compose, which it names, have one each",
}
SCRIPTS: dict[type[Result], Script] = {
    HeadWeights: Script("head", _head),
    HeadAttention: Script("head", _head),
    Finding: Script("find", _finding),
    Ablation: Script("ablate", _ablation),
    Flow: Script("flow", _flow),
    Composition: Script("compose", _composition),
}


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
