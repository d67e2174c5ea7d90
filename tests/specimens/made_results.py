"""Results built by hand: attention computed in NumPy on made-up vectors, for tests of what is shown."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from attnscope.analysis.heads.view import links
from attnscope.analysis.scores.dense import apply_measures as measure
from attnscope.analysis.scores.dense import unplaced
from attnscope.measures import MEASURES
from attnscope.results import (
    Certificate,
    Fault,
    HeadAttention,
    HeadScores,
    Kind,
    LayerCheck,
    OutputCheck,
    Overview,
    Projection,
    Provenance,
    Verdict,
    Verification,
)
from attnscope.results.overview import Module
from attnscope.tokens import Token, Tokens

DOOR = ["[CLS]", "the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired", ".", "[SEP]"]
AWKWARD = [
    "[CLS]",
    "日本語",
    "سلام",
    "👍🏽",
    "e\u0301",
    "\u0301",
    "[/b]",
    "[red]",
    "\x1b[31m",
    "$x$",
    "a,b",
    '"q"',
    "[SEP]",
]


def tokens(names: Sequence[str], unknown: Sequence[int] = ()) -> Tokens:
    """Tokens of a text in which the names stand with a blank between them; `[CLS]` and `[SEP]` are added."""
    inner = [name for name in names if name not in ("[CLS]", "[SEP]")]
    text, items, place = " ".join(inner), [], 0
    for position, name in enumerate(names):
        if name in ("[CLS]", "[SEP]"):
            items.append(Token(101 + position, name, "", None, None, special=True))
            continue
        span = (place, place + len(name))
        items.append(Token(1000 + position, name, name, span, position, unknown=position in unknown))
        place += len(name) + 1
    return Tokens((text,), tuple(items))


def provenance(demo: bool = False, requested: str | None = None) -> Provenance:
    model = "demo" if demo else "bert-base-uncased"
    return Provenance(
        requested=requested or model,
        model=model,
        architecture="BertModel",
        revision=None if demo else "86b5e0934494bd15c9632b12f734a8a67f723594",
        digest="sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        demo=demo,
        kernel="eager",
        route="interface takeover",
        device="cpu",
        dtype="float32",
        versions={"torch": "2.9.0", "transformers": "5.23.0"},
        token_ids=(101, 1996, 102),
        read=("The door opened.",),
        run=("-m", model),
    )


def certificate(verdict: Verdict = Verdict.CERTIFIED, weight_error: float = 3.1e-8) -> Certificate:
    """A certificate of each verdict, with the errors and faults that such a verdict has."""
    weakest = 0.31 if verdict is Verdict.INCONCLUSIVE else 1234.5
    faults = (
        Fault("key rotation left out", 0.02, 0.03, weakest),
        Fault("scale off by sqrt 2", 0.2, 0.3, 45678.0),
    )
    reasons = {
        Verdict.INCONCLUSIVE: "would not have been seen: key rotation left out",
        Verdict.PARTIAL: "relative-position term read as a remainder",
        Verdict.UNCERTIFIED: "sparse layout, no dense Q and K",
        Verdict.FAILED: "the recomputed attention is not the model's",
    }
    open_ = verdict is Verdict.UNCERTIFIED
    return Certificate(
        verdict=verdict,
        weight_error=math.nan if open_ else 0.25 if verdict is Verdict.FAILED else weight_error,
        weight_tolerance=math.nan if open_ else 5.2e-7,
        output_error=math.nan if open_ else 1.1e-7,
        output_tolerance=math.nan if open_ else 1.04e-6,
        precision="float32",
        faults=() if open_ else faults,
        reason=reasons.get(verdict, ""),
    )


def head(
    names: Sequence[str] = DOOR,
    key_names: Sequence[str] | None = None,
    causal: bool = False,
    empty: Sequence[int] = (),
    verdict: Verdict = Verdict.CERTIFIED,
    demo: bool = False,
    dim: int = 8,
    spread: float = 2.0,
    **changed: object,
) -> HeadAttention:
    """One head; `empty` lists queries that may look at no key, `key_names` makes it a cross-attention."""
    query_tokens = tokens(names)
    key_tokens = query_tokens if key_names is None else tokens(key_names)
    queries, keys = len(query_tokens), len(key_tokens)
    random = np.random.default_rng(7)
    q, k = random.normal(size=(queries, dim)) * spread, random.normal(size=(keys, dim))
    v = random.normal(size=(keys, dim + 1))
    allowed = np.tril(np.ones((queries, keys), bool)) if causal else np.ones((queries, keys), bool)
    allowed[list(empty)] = False
    scores = q @ k.T
    scaled = np.where(allowed, scores / math.sqrt(dim), np.nan)
    weights = softmax(scaled, allowed)
    output = np.where(allowed.any(1)[:, None], np.nan_to_num(weights) @ v, np.nan)
    fields = {
        "layer": 3, "head": 11, "kind": Kind.ENCODER if key_names is None else Kind.CROSS,
        "key_head": 11, "heads": 12, "key_heads": 12, "layers": 12,
        "query_tokens": query_tokens, "key_tokens": key_tokens, "q": q, "k": k, "v": v,
        "scores": scores, "scaled": scaled, "weights": weights, "output": output, "allowed": allowed,
        "scale": 1 / math.sqrt(dim), "softcap": None, "sink": None, "window": None,
        "module": "encoder.layer.3.attention.self", "certificate": certificate(verdict),
        "provenance": provenance(demo),
    }  # fmt: skip
    return HeadAttention(**(fields | changed))  # type: ignore[arg-type]


def projection(of: HeadAttention | None = None, **changed: object) -> Projection:
    """A map of a head with made-up places; distances are true cosine distances, figures are made up."""
    shown = of or head()
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (shown.q, shown.k))
    random = np.random.default_rng(13)
    fields = {
        "head": shown, "queries": random.normal(size=(len(q), 2)) * 40,
        "keys": random.normal(size=(len(k), 2)) * 40, "distance": 1 - q @ k.T, "metric": "cosine",
        "perplexity": 5.0, "wanted_perplexity": 5.0, "seed": 0, "max_iter": 100_000_000,
        "iterations": 1300, "settled": True, "divergence": 0.35, "trustworthiness": 0.924,
        "neighbours": 5, "correlation": -0.613,
    }  # fmt: skip
    return Projection(**(fields | changed))  # type: ignore[arg-type]


def softmax(scaled: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Rows that sum to 1 over the allowed keys, 0 elsewhere; NaN in rows without any."""
    powers = np.exp(np.where(allowed, scaled, -np.inf))
    sums = powers.sum(1, keepdims=True)
    return np.divide(powers, sums, out=np.full_like(powers, np.nan), where=sums > 0)


def overview(
    layers: int = 12,
    heads: int = 12,
    names: Sequence[str] = DOOR,
    verdicts: dict[tuple[int, int], Verdict] | None = None,
    demo: bool = False,
) -> Overview:
    """Several heads, sharper the higher; `verdicts` by (layer, head) where not certified."""
    random = np.random.default_rng(11)
    text = tokens(names)
    everything = np.ones((len(text), len(text)), bool)
    weights = [
        [
            softmax(random.normal(size=everything.shape) * random.uniform(0.2, 4), everything)
            for _ in range(heads)
        ]
        for _ in range(layers)
    ]
    entropy = np.array([[-(w * np.log(w)).sum(1).mean() for w in row] for row in weights])
    special = verdicts or {}
    return Overview(
        kind=Kind.ENCODER,
        query_tokens=text,
        key_tokens=text,
        scores={"entropy": scores("entropy", entropy, len(text))},
        **links(weights, text, text, Kind.ENCODER),
        weights=tuple(tuple(row) for row in weights),
        certificates=tuple(
            tuple(certificate(special.get((i, j), Verdict.CERTIFIED)) for j in range(heads))
            for i in range(layers)
        ),
        provenance=provenance(demo),
        modules=tuple(Module(f"encoder.layer.{i}.attention.self", heads, layers) for i in range(layers)),
    )


def measured(of: Overview, *names: str) -> Overview:
    """The overview by other measures, taken from its own weights."""
    weights = [[torch.from_numpy(each) for each in row] for row in of.weights or ()]
    apart = unplaced(of.kind, of.query_tokens, of.key_tokens)
    return replace(of, scores=measure(weights, names, layers=of.layers, heads=of.heads, unplaced=apart))


def scores(measure: str, values: np.ndarray, keys: int = 1, **changed: object) -> HeadScores:
    """Values by layer and head, described as the registered measure is."""
    named = MEASURES[measure]
    layers, heads = (tuple(range(count)) for count in values.shape)
    fields = {"layers": layers, "heads": heads, "values": values, "limits": named.limits(keys)}
    return HeadScores(named.description, **(fields | changed))  # type: ignore[arg-type]


def verification(
    layers: int = 4,
    heads: int = 12,
    verdicts: dict[tuple[int, int], Verdict] | None = None,
    difference: float = 0.0,
) -> Verification:
    special = verdicts or {}
    checks = tuple(
        LayerCheck(
            layer=i,
            kind=Kind.ENCODER,
            module=f"encoder.layer.{i}.attention.self",
            certificates=tuple(
                certificate(special.get((i, j), Verdict.CERTIFIED), 1e-8 * (1 + (5 * i + j) % 7))
                for j in range(heads)
            ),
        )
        for i in range(layers)
    )
    outputs = (
        OutputCheck("last_hidden_state", difference, difference == 0),
        OutputCheck("pooler_output", 0.0, True),
    )
    return Verification(tokens(DOOR), checks, outputs, provenance())


def plain(text: str) -> str:
    """`text` without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
