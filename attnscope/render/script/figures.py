"""What of a result a program of `again` is told: where the figures come from, and the figures themselves."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnscope.errors import InputError
from attnscope.results import HeadAttention, HeadWeights, Kind, Provenance, Result
from attnscope.tokens import Tokens

_MOST = 2048  # weights of a head: all of short texts, of longer ones the largest of every query
_DEMO = {"demo": "encoder", "demo-causal": "causal", "demo-translate": "translate"}
_EXACT = ("float32", "float64")
_WEIGHTS, _COARSE = 1e-5, 2e-2  # how far a weight may lie off: in these types, and in others
Told = dict[str, Any]


class Script(NamedTuple):
    """The program for one kind of result, and what it is told."""

    program: str
    told: Callable[[Any], Told]


def shown(result: Result) -> Told:
    """All that the program of a result is told; `InputError` where its figures cannot be computed plainly."""
    return SCRIPTS[type(result)].told(result)


def _run(origin: Provenance, kind: Kind, tower: str) -> Told:
    """What was run, and on what."""
    if not origin.inputs:
        raise InputError("no script: what the model read is no text alone, or was read piece by piece")
    if origin.adapter not in (None, "none"):
        raise InputError("no script: an adapter was put into the model")
    if tower:
        raise InputError(f"no script: {tower} is one of several parts of its model that attend")
    return {
        "model": None if origin.demo else origin.model,
        "demo": _DEMO.get(origin.model, ""),
        "revision": origin.revision,
        "digest": origin.digest,
        "architecture": origin.architecture,
        "dtype": origin.dtype,
        "versions": origin.versions,
        "inputs": origin.inputs,
        "kind": kind.value,
        "allowed": _WEIGHTS if origin.dtype in _EXACT else _COARSE,
    }


def _head(result: HeadWeights) -> Told:
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
    return _run(result.provenance, result.kind, result.tower) | {
        "layer": result.layer,
        "head": result.head,
        "queries": _names(queries),
        "keys": _names(keys),
        "weights": [(query, key, weight) for weight, query, key in links],
    }


def _names(tokens: Tokens) -> list[str]:
    """What stands at every position of the model's input; nothing where that was left out."""
    names = dict(zip(tokens.positions, tokens.names, strict=True))
    return [names.get(position, "") for position in range(1 + max(names, default=-1))]


SCRIPTS: dict[type[Result], Script] = {
    HeadWeights: Script("head", _head),
    HeadAttention: Script("head", _head),
}
