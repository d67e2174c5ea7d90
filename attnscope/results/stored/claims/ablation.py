"""Heads taken away: all of it stands in the document, the ranking under `heads`, the best first."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from attnscope.results.base.origin import Provenance
from attnscope.results.claims.ablation import (
    Ablation,
    Answer,
    Effect,
    Estimate,
    Floor,
    Group,
    HeadEffect,
    Intervention,
)
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value, or_none
from attnscope.results.stored.codec.tokens import read_tokens, tokens_document, written
from attnscope.tokens import Tokens

_NUMBERS = ("before", "after", "difference", "kl")
_BESIDE = ("chance", "beaten", "others", "estimate")


@document.register
def _(result: Ablation, arrays: bool = True) -> dict[str, Value]:
    return {
        "schema": "attnscope.ablation/1",
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "answer": asdict(result.answer),
        "method": result.method.value,
        "how": result.how,
        "edge": None if result.edge is None else list(result.edge),
        "looked_at": len(result.estimates) or len(result.heads),
        "heads": [_head(each) for each in result.heads],
        "group": None if result.group is None else _group(result.group),
        "noise_floor": _floor(result.floor),
        "intervention": asdict(result.intervention),
        "estimates": [asdict(each) for each in result.estimates],
        "foretold_by": result.foretold_by,
        "rank_correlation": or_none(result.rank_correlation),
        "total": None if result.total is None else asdict(result.total),
        "provenance": provenance(result.provenance),
        **tokens_document(result.tokens),
        **written(result.tokens),
        **_side(result.target, "target"),
        **_side(result.other, "other"),
    }


def _head(one: HeadEffect) -> dict[str, Value]:
    told = {"layer": one.layer, "head": one.head, **{name: getattr(one, name) for name in _NUMBERS}}
    beside = {"chance": or_none(one.chance), "beaten": one.beaten, "others": one.others}
    return {**told, **beside, "estimate": or_none(one.estimate)}


def _group(group: Group) -> dict[str, Value]:
    return asdict(group) | {"heads": [list(each) for each in group.heads], "chance": or_none(group.chance)}


def _floor(floor: Floor) -> dict[str, Value]:
    return {
        "rounding": floor.rounding,
        "rounding_kl": floor.rounding_kl,
        "runs": floor.runs,
        "seed": floor.seed,
        "random": [_head(each) for each in floor.random],
    }


def _side(tokens: Tokens | None, name: str) -> dict[str, Value]:
    """The tokens of a side, and how the model wrote them; nothing where there is none."""
    if tokens is None:
        return {}
    wrote = {f"{name}_written": tokens.written} if tokens.written else {}
    return {**tokens_document(tokens, f"{name}_"), **wrote}


@arrays_of.register
def _(result: Ablation) -> Arrays:
    """One entry per head, in the order of the ranking; NaN where something is not known."""
    names = ("layer", "head", "beaten", "others")
    whole = {name: np.array([getattr(one, name) for one in result.heads], np.int64) for name in names}
    return whole | {
        name: np.array([_or_nan(getattr(one, name)) for one in result.heads], np.float64)
        for name in (*_NUMBERS, "chance", "estimate")
    }


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


@reads("attnscope.ablation/1")
def read_ablation(record: Record) -> Ablation:
    tokens = read_tokens(record, wrote=record.get("written", str, ""))
    answer = record.get("answer", Answer)
    if answer.position is not None and not 0 <= answer.position < len(tokens):
        raise Damaged("'answer' has a position that is no token's")
    result = made(
        Ablation,
        record,
        tokens=tokens,
        target=_read_side(record, "target"),
        other=_read_side(record, "other"),
        answer=answer,
        heads=record.get("heads", tuple[HeadEffect, ...]),
        group=record.get("group", Group | None),
        floor=record.get("noise_floor", Floor),
        intervention=record.get("intervention", Intervention),
        estimates=record.get("estimates", tuple[Estimate, ...], ()),
        foretold_by=record.get("foretold_by", str, "patching"),
        total=record.get("total", Effect | None, None),
        provenance=record.get("provenance", Provenance),
    )
    _check_edge(result)
    _check_places(result.heads)
    return result


def _read_side(record: Record, name: str) -> Tokens | None:
    if f"{name}_tokens" not in record.told:
        return None
    return read_tokens(record, f"{name}_", record.get(f"{name}_written", str, ""))


def _check_edge(result: Ablation) -> None:
    if result.edge is None:
        return
    for position, tokens in zip(result.edge, (result.query_tokens, result.key_tokens), strict=True):
        if not 0 <= position < len(tokens):
            raise Damaged("'edge' has a position that is no token's")


def _check_places(heads: Sequence[HeadEffect]) -> None:
    places = [(each.layer, each.head) for each in heads]
    if len(set(places)) != len(places) or any(min(place) < 0 for place in places):
        raise Damaged("'heads' has a layer and head twice, or none")
