"""A result as one JSON document with a versioned schema, keys named by the words of the axes."""

import json
import math
from dataclasses import asdict
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Shaped

from attnscope.results import (
    Certificate,
    HeadAttention,
    HeadScores,
    HeadWeights,
    Overview,
    Provenance,
    Result,
    SpecialMass,
    Verification,
)
from attnscope.tokens import Token, Tokens

Value = Any  # anything that json writes


def as_json(result: Result) -> str:
    """Strict JSON, NaN and infinities as null; one key a line, one row of a matrix or one token a line."""
    entries = [f"  {_written(key)}: {_laid_out(value)}" for key, value in document(result).items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _laid_out(value: Value) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n    " + ",\n    ".join(map(_written, value)) + "\n  ]"
    return _written(value)


def _written(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@singledispatch
def document(result: Result, arrays: bool = True) -> dict[str, Value]:
    """The document as plain values; without `arrays` only what describes them. One registration a result."""
    raise NotImplementedError(type(result))


@document.register
def _(result: HeadWeights, arrays: bool = True) -> dict[str, Value]:
    return _head(result) | (_head_arrays(result) if arrays else {})


def _head(result: HeadWeights) -> dict[str, Value]:
    """What describes a head; null for what weights that were only returned do not tell."""
    described = ("layer", "head", "layers", "heads", "tower", "module", "block", "blocks")
    of_operands = ("key_head", "key_heads", "window")
    terms = getattr(result, "terms", None)
    return {
        "schema": "attnscope.head/1",
        "name": result.name,
        "kind": result.kind.value,
        **{name: getattr(result, name) for name in described},
        **{name: getattr(result, name, None) for name in of_operands},
        **{name: number(getattr(result, name, None)) for name in ("scale", "softcap", "sink")},
        "added": None if terms is None else list(terms),
        "notes": list(result.notes),
        "special_mass": special_mass(result.special_mass),
        **written(result.query_tokens),
        "verdict": result.certificate.verdict.value,
        "certificate": certificate(result.certificate),
        "provenance": provenance(result.provenance),
        "query_texts": texts(result.query_tokens),
        "key_texts": texts(result.key_tokens),
        "query_tokens": tokens(result.query_tokens),
        "key_tokens": tokens(result.key_tokens),
    }


def _head_arrays(result: HeadWeights) -> dict[str, Value]:
    allowed_weights = {"allowed": result.allowed.tolist(), "weights": numbers(result.weights)}
    names = ("scores", "scaled", "q", "k", "v", "output")
    if not isinstance(result, HeadAttention):
        return allowed_weights | dict.fromkeys((*names, "terms"))
    stages = {name: numbers(getattr(result, name)) for name in names}
    return {
        **allowed_weights,
        **stages,
        "terms": {name: numbers(each) for name, each in result.terms.items()},
    }


@document.register
def _(result: Overview, arrays: bool = True) -> dict[str, Value]:
    every = [certificate for layer in result.certificates for certificate in layer]
    return {
        "schema": "attnscope.overview/1",
        "kind": result.kind.value,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "tower": result.tower,
        "notes": list(result.notes),
        "measure": result.main.measure,
        "unit": result.main.unit,
        "words": result.words,
        "special": result.special.value,
        "special_mass": special_mass(result.special_mass),
        **written(result.query_tokens),
        "verdict": max((c.verdict for c in every), key=lambda verdict: verdict.rank).value if every else None,
        "provenance": provenance(result.provenance),
        "query_texts": texts(result.query_tokens),
        "key_texts": texts(result.key_tokens),
        "query_tokens": tokens(result.query_tokens),
        "key_tokens": tokens(result.key_tokens),
        **{name: numbers(each.values) for name, each in result.scores.items()},
        "results": [_overview_head(result, i, j) for i, j in np.ndindex(result.main.values.shape)],
        "measures": [measured(each) for each in result.scores.values()],
    }


def _overview_head(result: Overview, i: int, j: int) -> dict[str, Value]:
    """One head of an overview; query and key are null where no query has a key."""
    query, key = (int(position) for position in result.strongest[i, j])
    return {
        "layer": result.layers[i],
        "head": result.heads[j],
        **{name: number(each.values[i, j]) for name, each in result.scores.items()},
        "query": None if query < 0 else query,
        "key": None if key < 0 else key,
        "weight": number(result.strongest_weight[i, j]),
        "certificate": certificate(result.certificates[i][j]),
    }


def measured(scores: HeadScores) -> dict[str, Value]:
    """What is said of a measure, and of its values in all; they themselves stand elsewhere."""
    described = asdict(scores.description)
    return described | {
        "range": scores.description.range,
        "limits": list(scores.limits),
        "absent": scores.absent,
    }


@document.register
def _(result: Verification, arrays: bool = True) -> dict[str, Value]:
    return {
        "schema": "attnscope.verification/1",
        "verdict": result.verdict.value,
        "notes": list(result.notes),
        "outputs": [asdict(check) | {"difference": number(check.difference)} for check in result.outputs],
        "provenance": provenance(result.provenance),
        "texts": texts(result.tokens),
        "tokens": tokens(result.tokens),
        "layers": [
            {
                "layer": layer.layer,
                "kind": layer.kind.value,
                "module": layer.module,
                "tower": layer.tower,
                "route": layer.route,
                "block": layer.block,
                "heads": [{"head": i} | certificate(one) for i, one in enumerate(layer.certificates)],
            }
            for layer in result.layers
        ],
    }


def provenance(told: Provenance) -> dict[str, Value]:
    return asdict(told) | {"versions": dict(sorted(told.versions.items()))}


def certificate(told: Certificate) -> dict[str, Value]:
    """The certificate with its power and the names of the faults that it would have missed."""
    errors = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
    measured = ("weight_error", "output_error", "power")
    return {
        "verdict": told.verdict.value,
        "reason": told.reason,
        "precision": told.precision,
        **{name: number(getattr(told, name)) for name in errors},
        "unseen": list(told.unseen),
        "faults": [
            {"name": fault.name} | {name: number(getattr(fault, name)) for name in measured}
            for fault in told.faults
        ],
    }


def special_mass(told: SpecialMass | None) -> Value:
    """The share of the weight on special tokens in all and by name, None where there are none."""
    return None if told is None else {"total": told.total, "by_name": dict(told.by_name)}


def written(told: Tokens) -> dict[str, Value]:
    """How the model wrote the last of the texts itself; nothing where all was given."""
    return {"written": told.written} if told.written else {}


def texts(told: Tokens) -> list[str]:
    return [_writable(text) for text in told.texts]


def tokens(told: Tokens) -> list[Value]:
    return [_token(told, position, item) for position, item in enumerate(told.items)]


def _token(told: Tokens, position: int, item: Token) -> dict[str, Value]:
    return {
        "position": position,
        "id": item.id if item.id >= 0 else None,
        "piece": _writable(item.piece),
        "text": _writable(item.text),
        "label": told.labels[position],
        "span": None if item.span is None else list(item.span),
        "word": item.word,
        "part": item.part,
        "special": item.special,
        "unknown": item.unknown,
    }


def _writable(text: str) -> str:
    """`text` without lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def number(value: float | None) -> float | None:
    """A plain float, None for what JSON has no number for."""
    return float(value) if value is not None and math.isfinite(value) else None


def numbers(values: Shaped[np.ndarray, "..."]) -> list[Value]:
    """Nested lists of floats, outermost axis first, None for what is not finite."""
    objects = values.astype(object)
    objects[~np.isfinite(values)] = None
    nested: list[Value] = objects.tolist()
    return nested
