"""One word in many texts: cosines by layer and pair of texts, and how far labels part them."""

from dataclasses import asdict

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Provenance
from attnscope.results.senses import Senses, Separation, Usage
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value

_COSINES = Float[np.ndarray, "layer text text"]
_BY_LAYER = ("within", "between", "chance", "percentile", "best_chance", "best_percentile")
_BY_HEAD = ("heads_within", "heads_between")


@document.register
def _(result: Senses, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.senses/1",
        "asked": result.asked,
        "kind": result.kind.value,
        "verdict": result.verdict.value,
        "usages": [asdict(usage) for usage in result.usages],
        "layers": list(result.layers),
        "heads": list(result.heads),
        "certified": dict(result.certified),
        "controls": None if result.separation is None else result.separation.controls,
        "seed": None if result.separation is None else result.separation.seed,
        "provenance": provenance(result.provenance),
    }
    if not arrays:
        return told
    parted = None if result.separation is None else _separation(result.separation)
    return told | {"cosines": result.cosines, "separation": parted}


def _separation(found: Separation) -> dict[str, Value]:
    return {name: getattr(found, name) for name in (*_BY_LAYER, *_BY_HEAD)}


@arrays_of.register
def _(result: Senses) -> Arrays:
    found: Arrays = {"cosines": result.cosines}
    if result.separation is not None:
        found |= {name: getattr(result.separation, name) for name in (*_BY_LAYER, *_BY_HEAD)}
    return found


@reads("attnscope.senses/1")
def read(record: Record) -> Senses:
    layers, heads = record.get("layers", tuple[int, ...]), record.get("heads", tuple[int, ...])
    usages = record.get("usages", tuple[Usage, ...])
    if len(usages) < 2:
        raise Damaged("'usages' are of fewer than two texts")
    record.sizes.update(layer=len(layers), head=len(heads), text=len(usages))
    return made(
        Senses,
        record,
        usages=usages,
        cosines=record.array("cosines", _COSINES),
        separation=_read_separation(record),
        certified=record.get("certified", dict[str, int]),
        provenance=record.get("provenance", Provenance),
    )


def _read_separation(record: Record) -> Separation | None:
    if record.get("controls", int | None) is None:
        return None
    own = record
    if record.arrays is None:
        numbers = {name: record.told[name] for name in ("controls", "seed")}
        own = Record({**record.part("separation").told, **numbers}, sizes=record.sizes)
    return made(Separation, own)
