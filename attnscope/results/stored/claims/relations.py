"""Relations of a treebank by head: JSON has a summary of each by name, and every accuracy."""

from dataclasses import asdict, replace

from attnscope.results.base.origin import Provenance
from attnscope.results.claims.relations import Dependencies, Finder, HeldOut, Offset, Relation, Treebank
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value

_ARRAYS = ("accuracies", "offsets")


@document.register
def _(result: Dependencies, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.dependencies/1",
        "treebank": asdict(result.treebank),
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "certified": dict(result.certified),
        "sampled": result.sampled,
        "unlike": result.unlike,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "tried": result.tried,
        "tried_offsets": list(result.tried_offsets),
        "ahead": result.ahead,
        "shown": result.shown,
        "relations": {relation.name: _relation(relation) for relation in result.relations},
        "overall": _relation(result.overall),
        "provenance": provenance(result.provenance),
    }
    return told | ({name: getattr(result, name) for name in _ARRAYS} if arrays else {})


def _relation(relation: Relation) -> dict[str, Value]:
    return {name: value for name, value in asdict(relation).items() if name != "name"} | {
        "beaten": relation.beaten,
        "told_apart": relation.told_apart,
    }


@arrays_of.register
def _(result: Dependencies) -> Arrays:
    """Axes: layer head direction relation, and offset relation."""
    return {name: getattr(result, name) for name in _ARRAYS}


@reads("attnscope.dependencies/1")
def read_dependencies(record: Record) -> Dependencies:
    named = record.part("relations")
    relations = tuple(_read(named.part(name), name) for name in named.told)
    if not relations:
        raise Damaged("'relations' are none")
    offsets = record.get("tried_offsets", tuple[int, ...])
    layers, heads = record.get("layers", tuple[int, ...]), record.get("heads", tuple[int, ...])
    own = replace(record, sizes={**record.sizes, "layer": len(layers), "head": len(heads), "direction": 2})
    own.sizes.update(relation=len(relations), offset=len(offsets))
    result = made(
        Dependencies,
        own,
        treebank=record.get("treebank", Treebank),
        relations=relations,
        overall=_read(record.part("overall"), "all but punct"),
        certified=record.get("certified", dict[str, int]),
        provenance=record.get("provenance", Provenance),
    )
    if result.shown and result.shown not in named.told:
        raise Damaged("'shown' is none of the relations")
    return result


def _read(record: Record, name: str) -> Relation:
    return made(
        Relation,
        record,
        name=name,
        best=record.get("best", Finder),
        baseline=record.get("baseline", Offset),
        held_out=record.get("held_out", HeldOut | None),
    )
