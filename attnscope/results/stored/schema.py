"""JSON Schema of every kind of document, out of the types that files of results are read by.

It says what a JSON document of attnscope holds: every field with its type, arrays as nested lists with the
names of their axes, and of every object what its class says of it. Keys that only tell readers what follows
from others (`name`, `looked_at`) are allowed beside these and not described.
"""

import inspect
import re
from enum import StrEnum
from types import NoneType
from typing import Any, Literal, get_args

import numpy as np

from attnscope.results.base.origin import Verdict
from attnscope.results.base.parts import Value
from attnscope.results.heads import HeadAttention, HeadWeights
from attnscope.results.result import KINDS
from attnscope.results.stored.arrays import Hint
from attnscope.results.stored.listings import LISTINGS
from attnscope.results.stored.slots import Slot, form, options, several, slots
from attnscope.results.stored.strict import LAYOUT, VERSION
from attnscope.tokens import Token, Tokens

Schema = dict[str, Value]
DESCRIBED = (*KINDS, *LISTINGS)
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", bool: "boolean"}
_NUMBERS: Schema = {"type": ["number", "null"]}  # null stands for what is no number, or not finite
_ENTRIES = {"float": _NUMBERS, "int": {"type": "integer"}, "bool": {"type": "boolean"}}


def json_schema(kind: str) -> Schema:
    """The schema of the JSON documents of one kind, one of `DESCRIBED`; `KeyError` where there is none."""
    if kind in LISTINGS:
        return _listing(kind)
    objects: dict[str, Schema] = {}
    called = f"attnscope.{kind}/{VERSION}"
    text = {"type": "string"}
    properties: Schema = {
        "schema": {"const": called},
        "answer": text | {"minLength": 1, "description": "the first line of the screen"},
        "next": text | {"description": "a command that leads on"},
        "verdict": {"enum": [*(each.value for each in Verdict), None]},
        "layout": {"const": LAYOUT},
        "exact": {"type": "object", "description": "what strict JSON cannot hold, by JSON Pointer"},
        "digests": {"type": "object", "additionalProperties": text},
    }
    needed = ["schema", "answer", "layout", "digests"]
    if kind == "head":  # of some all is known, of others what the model returned
        own: Schema = {"anyOf": [_reference(each, objects) for each in (HeadWeights, HeadAttention)]}
    else:
        own = _fields(KINDS[kind], objects)
        properties, needed = properties | own.pop("properties"), needed + own.pop("required")
    whole = {"$schema": DIALECT, "$id": called, "title": called, "type": "object"}
    return whole | own | {"properties": properties, "required": needed, "$defs": objects}


def _listing(kind: str) -> Schema:
    """That of a document that is no result: it has an answer, and nothing that proves it."""
    objects: dict[str, Schema] = {}
    called = f"attnscope.{kind}/{VERSION}"
    own = _fields(LISTINGS[kind], objects)
    first: Schema = {"schema": {"const": called}, "answer": {"type": "string", "minLength": 1}}
    whole = {"$schema": DIALECT, "$id": called, "title": called}
    return (
        whole
        | own
        | {
            "properties": first | own["properties"],
            "required": [*first, *own["required"]],
            "$defs": objects,
        }
    )


def _any(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _fields(kind: Any, objects: dict[str, Schema]) -> Schema:
    """What the keys of a dataclass hold, those of parts that stand beside them among them."""
    properties: dict[str, Schema] = {}
    needed: list[str] = []
    for slot in slots(kind):
        for key, schema, always in _keys(kind, slot, objects):
            properties[key] = schema
            needed += [key] if always else []
    return {"type": "object", "description": _told(kind), "properties": properties, "required": needed}


def _told(kind: Any) -> str:
    """What a class says of its fields, by the keys that they have in files."""
    said = re.sub(r"\s*\n\s*", " ", inspect.getdoc(kind) or "")
    for slot in slots(kind):
        said = said.replace(f"`{slot.name}`", f"`{slot.key}`")
    return said


def _keys(kind: Any, slot: Slot, objects: dict[str, Schema]) -> list[tuple[str, Schema, bool]]:
    """The keys of a field, each with its schema and whether it has to be there."""
    if slot.holds_tokens:
        always = NoneType not in options(slot.hint)
        own = _tokens(objects)["properties"]
        found = [(slot.prefix + key, schema, always) for key, schema in own.items()]
        return [*found, (f"{slot.prefix}shared", {"type": "boolean"}, False)]
    if slot.spread:
        inner = _fields(slot.hint, objects)
        return [(key, each, key in inner["required"]) for key, each in inner["properties"].items()]
    schema = _of(slot.hint, objects)
    if slot.npz:
        schema = {"type": "null", "description": "in an npz alone"}
    elif slot.by:
        schema = {"type": "object", "additionalProperties": _of(get_args(slot.hint)[0], objects)}
    return [(slot.key, schema, True)]


def _of(hint: Hint, objects: dict[str, Schema]) -> Schema:
    kinds = [each for each in options(hint) if each is not NoneType]
    schemas = [_single(each, several(hint), objects) for each in kinds]
    if NoneType in options(hint):
        schemas.append({"type": "null"})
    return _any(schemas)


def _single(kind: Hint, tagged: bool, objects: dict[str, Schema]) -> Schema:
    shape = form(kind)
    if shape is np.ndarray:
        return _array(kind)
    if shape is object:
        schema = _reference(kind, objects)
        tag = {"properties": {"of": {"const": kind.__name__.lower()}}, "required": ["of"]}
        return {"allOf": [schema, tag]} if tagged else schema
    if shape is tuple:
        return _tuple(get_args(kind), objects)
    if shape is Literal:
        return {"enum": list(get_args(kind))}
    if kind is float:
        return _NUMBERS
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [each.value for each in kind]}
    if get_args(kind):  # a mapping by name
        return {"type": "object", "additionalProperties": _of(get_args(kind)[1], objects)}
    return {}


def _tuple(kinds: tuple[Hint, ...], objects: dict[str, Schema]) -> Schema:
    if kinds[1:] == (Ellipsis,):
        return {"type": "array", "items": _of(kinds[0], objects)}
    inner = [_of(each, objects) for each in kinds]
    return {"type": "array", "prefixItems": inner, "minItems": len(inner), "maxItems": len(inner)}


def _array(hint: Hint) -> Schema:
    """Nested lists, the first axis outermost; an axis without entries hides those within it."""
    array, outer = hint, 0
    while not hasattr(array, "dim_str"):  # tuples of arrays
        array, outer = get_args(array)[0], outer + 1
    axes = [*["each"] * outer, *array.dim_str.split()]
    if "..." in axes:
        return {"type": "array"}
    schema: Schema = next(each for name, each in _ENTRIES.items() if any(name in one for one in array.dtypes))
    for _ in axes:
        schema = {"type": "array", "items": schema}
    return schema | {"description": " x ".join(axes)}


def _reference(kind: Any, objects: dict[str, Schema]) -> Schema:
    name = kind.__name__
    if name not in objects:
        objects[name] = {}  # it may hold itself
        objects[name] = _fields(kind, objects)
    return {"$ref": f"#/$defs/{name}"}


def _tokens(objects: dict[str, Schema]) -> Schema:
    """Tokens as they stand in a file: each also with its position and its label."""
    schema = _fields(Tokens, objects)
    token = objects[Token.__name__]
    token["properties"] |= {
        "position": {"type": "integer"},
        "label": {"type": "string"},
        "id": {"type": ["integer", "null"]},
    }
    return schema
