"""From one token back to the input: a row per layer and method, and what replacing tokens does."""

from dataclasses import asdict

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Provenance
from attnscope.results.claims.ablation import Intervention
from attnscope.results.claims.flow import Ablated, Flow, Trust
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import read_tokens, tokens_document, written

_BY_LAYER = ("raw", "rollout", "by_norm", "zeroed")


@document.register
def _(result: Flow, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.flow/1",
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "query": result.query,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "most": result.most,
        "reason": result.reason,
        "certified": dict(result.certified),
        "ablated": None if result.ablated is None else _ablated(result.ablated),
        "zeroing": None if result.zeroing is None else asdict(result.zeroing),
        "no_zeroing": result.no_zeroing,
        **written(result.tokens),
        "provenance": provenance(result.provenance),
        **tokens_document(result.tokens),
    }
    if not arrays:
        return told
    return told | arrays_of(result) | {"inputs": [_input(result, key) for key in range(len(result.tokens))]}


def _ablated(found: Ablated) -> dict[str, Value]:
    return {
        "replacement": found.replacement,
        "answer": found.answer,
        "probability": found.probability,
        "tokens": found.count,
        "shuffles": found.shuffles,
        "seed": found.seed,
        "groups": [list(each) for each in found.groups],
        "trust": [asdict(each) for each in found.trust],
    }


def _input(result: Flow, key: int) -> dict[str, Value]:
    """One input token and all that is known of it."""
    shares = {name.replace(" ", "_"): float(each[key]) for name, each in result.methods.items()}
    effect = None if result.ablated is None else float(result.ablated.effects[key])
    return {"position": key, "token": result.tokens.labels[key], **shares, "effect": effect}


@arrays_of.register
def _(result: Flow) -> Arrays:
    """Axes: layer key, and key for `flow` and `effects`. What has no meaning is not there."""
    found = {name: getattr(result, name) for name in (*_BY_LAYER, "flow")}
    found["effects"] = None if result.ablated is None else result.ablated.effects
    return {name: each for name, each in found.items() if each is not None}


@reads("attnscope.flow/1")
def read_flow(record: Record) -> Flow:
    tokens = read_tokens(record, wrote=record.get("written", str, ""))
    layers = record.get("layers", tuple[int, ...])
    record.sizes.update(layer=len(layers), key=len(tokens))
    if not 0 <= record.get("query", int) < len(tokens):
        raise Damaged("'query' is no token's position")
    return made(
        Flow,
        record,
        tokens=tokens,
        layers=layers,
        ablated=_read_ablated(record),
        zeroing=record.get("zeroing", Intervention | None, None),
        no_zeroing=record.get("no_zeroing", str, ""),
        certified=record.get("certified", dict[str, int]),
        provenance=record.get("provenance", Provenance),
    )


def _read_groups(part: Record, record: Record) -> tuple[tuple[int, ...], ...]:
    groups: tuple[tuple[int, ...], ...] = part.get("groups", tuple[tuple[int, ...], ...], ())
    if any(not each or not all(0 <= place < record.sizes["key"] for place in each) for each in groups):
        raise Damaged("'groups' names positions that are none")
    return groups


def _read_ablated(record: Record) -> Ablated | None:
    if record.get("ablated", object) is None:
        return None
    part = record.part("ablated")
    return Ablated(
        effects=record.array("effects", Float[np.ndarray, " key"]),
        replacement=part.get("replacement", str),
        answer=part.get("answer", str),
        probability=part.get("probability", float),
        trust=part.get("trust", tuple[Trust, ...]),
        shuffles=part.get("shuffles", int),
        seed=part.get("seed", int),
        groups=_read_groups(part, record),
    )
