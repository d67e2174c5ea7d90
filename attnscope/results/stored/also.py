"""What files tell their readers beside the fields of a result: it follows from these and is not read again.

`also` gives it for each class by key, `columns` as arrays for an npz whose result holds none by itself.
"""

from collections.abc import Iterable
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Certificate
from attnscope.results.claims.ablation import Ablation
from attnscope.results.claims.checking import Check, HeadCheck
from attnscope.results.claims.composition import Composition, Pair
from attnscope.results.claims.corpus import LEVELS, Corpus, CorpusDifference
from attnscope.results.claims.difference import Difference
from attnscope.results.claims.finding import Controls, Finding
from attnscope.results.claims.flow import Ablated, Flow
from attnscope.results.claims.relations import Dependencies, Relation
from attnscope.results.claims.thumbnails import Thumbnails
from attnscope.results.comparison import Comparison, Divergence, Side
from attnscope.results.dimensions import Dimensions
from attnscope.results.heads import HeadAttention, HeadScores, HeadWeights, Overview
from attnscope.results.long import LongHead
from attnscope.results.media import PictureAttention, PictureHeads, SoundAttention, SoundHeads
from attnscope.results.outline import Cost, Outline
from attnscope.results.prediction import Prediction
from attnscope.results.senses import Senses
from attnscope.results.stored.arrays import Arrays
from attnscope.results.stored.strict import Value
from attnscope.results.terms import HeadTerms
from attnscope.results.verification import Verification
from attnscope.results.view import HeadView
from attnscope.results.worked import Check as WorkedCheck
from attnscope.results.worked import ScaleStudy, Step, Worked

_STRONGEST = 10  # pairs of heads that stand in JSON by name

# attributes that are written under their own names
_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    Ablation: ("verdict",),
    Ablated: ("count",),
    Certificate: ("power", "unseen"),
    Check: ("verdict",),
    Composition: ("verdict",),
    Corpus: ("verdict",),
    Controls: ("count",),
    CorpusDifference: ("verdict",),
    Cost: ("flops",),
    Dependencies: ("verdict", "tried"),
    HeadCheck: ("as_stored",),
    LongHead: ("name", "verdict"),
    Pair: ("difference",),
    PictureAttention: ("verdict",),
    PictureHeads: ("verdict",),
    Relation: ("beaten", "told_apart"),
    ScaleStudy: ("verdict",),
    Senses: ("verdict",),
    SoundAttention: ("verdict",),
    SoundHeads: ("verdict",),
    Thumbnails: ("verdict",),
    Verification: ("verdict",),
    WorkedCheck: ("passed",),
}


def also(result: Any) -> dict[str, Value]:
    """By key what follows from an object; its values are those of any field."""
    return {name: getattr(result, name) for name in _ATTRIBUTES.get(type(result), ())} | _further(result)


@singledispatch
def _further(result: Any) -> dict[str, Value]:
    return {}


@singledispatch
def columns(result: Any) -> Arrays:
    """What an npz has beside the arrays of the document, a row for each part of the result."""
    return {}


def _table(rows: Iterable[Any], whole: tuple[str, ...], numbers: tuple[str, ...]) -> Arrays:
    """A column for each attribute of `rows`: -1 for a whole number that is not told, NaN for another."""
    every = list(rows)
    kinds = [(whole, np.int64, -1), (numbers, np.float64, np.nan)]
    return {
        name: np.array([_or(getattr(each, name), none) for each in every], kind)
        for names, kind, none in kinds
        for name in names
    }


def _or(value: Any, none: float) -> Any:
    return none if value is None else value


@_further.register
def _(result: HeadWeights) -> dict[str, Value]:
    """What was not read of a head of which only the weights were returned is null."""
    terms = getattr(result, "terms", None)
    absent = {each.name for each in fields(HeadAttention)} - {each.name for each in fields(type(result))}
    return dict.fromkeys(sorted(absent)) | {
        "name": result.name,
        "verdict": result.verdict,
        "special_mass": result.special_mass,
        "added": None if terms is None else list(terms),
    }


@_further.register
def _(result: HeadView) -> dict[str, Value]:
    """What each row and column holds of the head's tokens."""
    named = {
        "queries": (result.query_tokens, result.query_groups),
        "keys": (result.key_tokens, result.key_groups),
    }
    return {"emptied_queries": result.emptied} | {
        name: [{"label": label, "tokens": group} for label, group in zip(tokens.labels, groups, strict=True)]
        for name, (tokens, groups) in named.items()
    }


@_further.register
def _(result: HeadTerms) -> dict[str, Value]:
    return {"sink_weights": result.sink_weights}


@_further.register
def _(result: Dimensions) -> dict[str, Value]:
    """The pair, and a row per dimension, largest product first."""
    head, place = result.head, (result.query, result.key)
    named = {"q": result.query_vector, "k": result.key_vector}
    named |= {"product": result.products, "others": result.beside}
    every = zip(result.order.tolist(), result.cumulated.tolist(), strict=True)
    products = [
        {"dim": dim, **{name: float(values[dim]) for name, values in named.items()}, "cumulated": so_far}
        for dim, so_far in every
    ]
    pair = {"score": float(head.scores[place]), "weight": float(head.weights[place])}
    return pair | {"rotary": result.rotation is not None, "products": products}


@_further.register
def _(result: HeadScores) -> dict[str, Value]:
    one = {"value": float(result.values.flat[0])} if result.values.size == 1 else {}
    return {"measure": result.measure, "range": result.description.range} | one


@_further.register
def _(result: Overview) -> dict[str, Value]:
    """Every measure by its name, and a row for each head with its strongest link and its verdict."""
    return {
        "layers": result.layers,
        "heads": result.heads,
        "measure": result.main.measure,
        "unit": result.main.unit,
        "verdict": result.verdict,
        **{name: each.values for name, each in result.scores.items()},
        "results": [_head(result, i, j) for i, j in np.ndindex(result.main.values.shape)],
    }


def _head(result: Overview, i: int, j: int) -> dict[str, Value]:
    query, key = (int(position) for position in result.strongest[i, j])
    return {
        "layer": result.layers[i],
        "head": result.heads[j],
        **{name: _value(each, i, j) for name, each in result.scores.items()},
        "query": None if query < 0 else query,
        "key": None if key < 0 else key,
        "weight": float(result.strongest_weight[i, j]),
        "verdict": result.certificates[i][j].verdict,
    }


def _value(scores: HeadScores, i: int, j: int) -> Value:
    """A number, or the class that it stands for."""
    named = scores.class_of(i, j)
    return float(scores.values[i, j]) if named is None else named or None


@_further.register
def _(result: Comparison) -> dict[str, Value]:
    """The provenance of the whole is that of side a."""
    return {
        "verdict": result.verdict,
        "words": result.words,
        "special": result.special,
        "provenance": result.a.head.provenance,
    }


@_further.register
def _(result: Divergence) -> dict[str, Value]:
    return {"jensen_shannon_unit": "nats"}


@_further.register
def _(result: Side) -> dict[str, Value]:
    """The word's row and vectors. Scores belong to single tokens: null where the row is over words."""
    scaled = result.head.scaled[result.position] if result.view is None else None
    return {
        "word": result.word,
        "pieces": result.pieces,
        "weights": result.weights,
        "scaled": scaled,
        "allowed": result.allowed,
        **result.vectors,
    }


@_further.register
def _(result: Worked) -> dict[str, Value]:
    """Every array by the name of its step: what was given has the keys that `attnscope sdpa` reads."""
    certificates = [{"against": against} | vars(one) | also(one) for against, one in result.proofs]
    arrays = {step.key: step.matrix.values for step in result.steps}
    return {"verdict": result.verdict, "certificates": certificates, **arrays}


@_further.register
def _(result: Step) -> dict[str, Value]:
    axes = result.matrix.rows, result.matrix.columns
    return {
        "given": not result.formula,
        "shape": result.matrix.values.shape,
        "axes": [each.symbol or each.word for each in axes],
        **{name: each.names for name, each in zip(("rows", "columns"), axes, strict=True)},
    }


@_further.register
def _(result: Outline) -> dict[str, Value]:
    layers = [
        {"tower": tower.name, "kind": tower.kind, **vars(layer)}
        for tower in result.towers
        for layer in tower.layers
    ]
    return {"bytes_float32": 4 * result.parameters, "layers": layers}


@_further.register
def _(result: Cost) -> dict[str, Value]:
    return {"bytes": result.memory}


@_further.register
def _(result: Ablation) -> dict[str, Value]:
    return {"looked_at": len(result.estimates) or len(result.heads)}


@_further.register
def _(result: Check) -> dict[str, Value]:
    return {"checked": len(result.heads), "not_as_stored": len(result.off)}


@_further.register
def _(result: Composition) -> dict[str, Value]:
    """How many pairs have a score, and the strongest of them, by the input that they go through."""
    looked_at = {each.value: result.looked_at(each) for each in result.through}
    strongest = {each.value: result.ranked(each)[:_STRONGEST] for each in result.through}
    return {"looked_at": looked_at, "strongest": strongest}


@_further.register
def _(result: Corpus) -> dict[str, Value]:
    return {"levels": LEVELS}


@_further.register
def _(result: Difference) -> dict[str, Value]:
    """The pairs as a ranking, those that differ most first."""
    numbers = ("divergences", "largest", "rounding")
    names = ("layer", "head", "layer_b", "head_b")
    return {
        "verdict": result.verdict,
        "looked_at": len(result.pairs),
        "within_rounding": result.within_rounding,
        "other_tokens": result.other_tokens,
        "unit": "nats",
        "provenance": result.a.provenance,
        "ranking": [
            dict(zip(names, result.pairs[i], strict=True))
            | {name.removesuffix("s"): float(getattr(result, name)[i]) for name in numbers}
            for i in result.ranking
        ],
    }


@_further.register
def _(result: Finding) -> dict[str, Value]:
    """Every head with what its controls have, the best first; those without a number come last."""
    unranked = [(int(i), int(j)) for i, j in np.argwhere(np.isnan(result.weights))]
    return {
        "verdict": result.verdict,
        "looked_at": result.weights.size,
        "best_percentile": result.best_percentile,
        "heads": [_found(result, i, j) for i, j in (*result.ranking, *unranked)],
    }


def _found(result: Finding, i: int, j: int) -> dict[str, Value]:
    own = {"weight": "weights", "rank": "ranks", "norm": "norms", "norm_share": "shares", "even": "even"}
    control = {
        name: _at(getattr(result.controls, name), i, j) for name in ("mean", "low", "high", "percentile")
    }
    control |= {name: _at(getattr(result, name), i, j) for name in ("difference", "followed")}
    return {
        "layer": result.layers[i],
        "head": result.heads[j],
        **{key: _at(getattr(result, name), i, j) for key, name in own.items()},
        "control": control,
        "account": result.account((i, j)),
        "verdict": result.verdicts[i][j],
    }


def _at(values: Float[np.ndarray, "layer head"] | None, i: int, j: int) -> float | None:
    return None if values is None else float(values[i, j])


@_further.register
def _(result: Flow) -> dict[str, Value]:
    """Every input token and all that is known of it."""
    effects = None if result.ablated is None else result.ablated.effects
    shares = {name.replace(" ", "_"): each for name, each in result.methods.items()}
    inputs = [
        {"position": key, "token": label}
        | {name: float(each[key]) for name, each in shares.items()}
        | {"effect": None if effects is None else float(effects[key])}
        for key, label in enumerate(result.tokens.labels)
    ]
    return {"verdict": result.verdict, "inputs": inputs}


@columns.register
def _(result: Ablation) -> Arrays:
    numbers = ("before", "after", "difference", "kl", "chance", "estimate")
    return _table(result.heads, ("layer", "head", "beaten", "others"), numbers)


@columns.register
def _(result: Outline) -> Arrays:
    layers = (layer for tower in result.towers for layer in tower.layers)
    return _table(layers, ("layer", "heads", "key_heads", "dim", "value_dim", "queries", "keys"), ())


@columns.register
def _(result: Verification) -> Arrays:
    """A row for each head of every layer, in order."""
    heads = [(layer, i) for layer in result.layers for i in range(len(layer.certificates))]
    certificates = [layer.certificates[i] for layer, i in heads]
    numbers = ("weight_error", "weight_tolerance", "output_error", "output_tolerance", "power")
    return {
        **_table((layer for layer, _ in heads), ("layer", "block"), ()),
        "tower": np.array([layer.tower for layer, _ in heads]),
        "head": np.array([i for _, i in heads], np.int64),
        "verdict": np.array([each.verdict.value for each in certificates]),
        **_table(certificates, (), numbers),
    }


@columns.register
def _(result: Overview) -> Arrays:
    verdicts = [[each.verdict.value for each in layer] for layer in result.certificates]
    places = {"layers": np.array(result.layers), "heads": np.array(result.heads)}
    return {**places, "verdicts": np.array(verdicts)}


@columns.register
def _(result: Prediction) -> Arrays:
    """Axes: blank guess; -1 and NaN where a blank has fewer guesses than another."""
    most = max((len(blank.guesses) for blank in result.blanks), default=0)
    shape = len(result.blanks), most
    ids, probabilities = np.full(shape, -1), np.full(shape, np.nan)
    for i, blank in enumerate(result.blanks):
        for j, guess in enumerate(blank.guesses):
            ids[i, j], probabilities[i, j] = guess.id, guess.probability
    return _table(result.blanks, ("position",), ()) | {"id": ids, "probability": probabilities}
