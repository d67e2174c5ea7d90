"""A result as an npz archive: its arrays bit by bit, and everything else as one JSON text named `meta`."""

import io
import json
from functools import singledispatch

import numpy as np
from jaxtyping import Shaped

from attnscope.render.file_json import document
from attnscope.results import (
    Certificate,
    HeadAttention,
    HeadWeights,
    LayerCheck,
    Overview,
    Result,
    Verdict,
    Verification,
)

Arrays = dict[str, Shaped[np.ndarray, "..."]]


def as_npz(result: Result) -> bytes:
    """An archive that `np.load` reads without pickles; its members are all dated 1980, never now."""
    meta = json.dumps(document(result, arrays=False), ensure_ascii=False, allow_nan=False)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, meta=np.array(meta), **arrays_of(result))
    return buffer.getvalue()


@singledispatch
def arrays_of(result: Result) -> Arrays:
    """The arrays by name. One registration a result."""
    raise NotImplementedError(type(result))


@arrays_of.register
def _(result: HeadWeights) -> Arrays:
    return {"weights": result.weights, "allowed": result.allowed}


@arrays_of.register
def _(result: HeadAttention) -> Arrays:
    names = ("weights", "scores", "scaled", "q", "k", "v", "output", "allowed")
    terms = {f"term {name}": values for name, values in result.terms.items()}
    return {name: getattr(result, name) for name in names} | terms


@arrays_of.register
def _(result: Overview) -> Arrays:
    """Axes: layer head, and layer head query key for the weights."""
    verdicts = [[certificate.verdict.value for certificate in layer] for layer in result.certificates]
    return {
        "layers": np.array(result.layers),
        "heads": np.array(result.heads),
        **{name: each.values for name, each in result.scores.items()},
        "strongest": result.strongest,
        "strongest_weight": result.strongest_weight,
        "weights": np.array(result.weights),
        "verdicts": np.array(verdicts),
    }


@arrays_of.register
def _(result: Verification) -> Arrays:
    """One entry per head of every layer, in order."""
    heads: list[tuple[LayerCheck, int, Certificate]] = [
        (layer, head, one) for layer in result.layers for head, one in enumerate(layer.certificates)
    ]
    measured = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
    verdicts: list[Verdict] = [one.verdict for _, _, one in heads]
    return {
        "tower": np.array([layer.tower for layer, _, _ in heads]),
        "layer": np.array([layer.layer for layer, _, _ in heads], np.int64),
        "block": np.array([layer.block for layer, _, _ in heads], np.int64),
        "head": np.array([head for _, head, _ in heads], np.int64),
        **{name: np.array([getattr(one, name) for _, _, one in heads], np.float64) for name in measured},
        "verdict": np.array([verdict.value for verdict in verdicts]),
    }
