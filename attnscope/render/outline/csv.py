"""An outline as CSV: a row per attention layer, empty where something is not told."""

from collections.abc import Iterator
from dataclasses import fields

from attnscope.render.kit.csv import Row, comments, rows
from attnscope.results import LayerOutline, Outline, Position
from attnscope.results.stored.document import document

_COLUMNS = tuple(field.name for field in fields(LayerOutline))


@rows.register
def _(result: Outline) -> Iterator[Row]:
    yield "tower", "kind", *_COLUMNS
    for tower in result.towers:
        for layer in tower.layers:
            values = (getattr(layer, name) for name in _COLUMNS)
            yield tower.name, tower.kind.value, *map(_cell, values)


def _cell(value: object) -> object:
    """Ways of telling positions by their names; what is not told is empty."""
    if isinstance(value, tuple):
        return " ".join(each.scheme for each in value if isinstance(each, Position))
    return "" if value is None else int(value) if isinstance(value, bool) else value


@comments.register
def _(result: Outline) -> Iterator[tuple[str, object]]:
    told = document(result)
    names = ("schema", "requested", "model", "demo", "revision", "architecture", "model_type", "parameters")
    yield from ((name, "" if told[name] is None else told[name]) for name in names)
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
