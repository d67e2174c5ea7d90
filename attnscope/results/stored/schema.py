"""JSON Schema of every kind of document, derived from result classes and their docstrings.

It describes every field: its type, arrays as nested lists with the names of their axes, and the text of its
class, its type, or else the glossary. Keys from `derived` are allowed and not described.
"""

import inspect
import re
from dataclasses import is_dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Value
from attnscope.results.heads import HeadAttention, HeadWeights
from attnscope.results.result import KINDS
from attnscope.results.stored.arrays import Hint, Slot, form, options, several, slots
from attnscope.results.stored.document import LISTINGS
from attnscope.results.stored.strict import LAYOUT, VERSION
from attnscope.tokens import Token, Tokens

Schema = dict[str, Value]
DESCRIBED = (*KINDS, *LISTINGS)
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", bool: "boolean"}
_NUMBERS: Schema = {"type": ["number", "null"]}  # null stands for what is no number, or not finite
_ENTRIES = {"float": _NUMBERS, "int": {"type": "integer"}, "bool": {"type": "boolean"}}
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`])")
_NAMED = re.compile(r"`(\w+)(?:\[[^`]*\])?`")


def json_schema(kind: str) -> Schema:
    """The JSON Schema of one kind of document, one of `DESCRIBED`; `KeyError` for another name."""
    if kind in LISTINGS:
        return _listing(kind)
    objects: dict[str, Schema] = {}
    called = f"attnscope.{kind}/{VERSION}"
    text = {"type": "string"}
    properties: Schema = {
        "schema": {"const": called},
        "answer": text | {"minLength": 1},
        "next": text,
        "verdict": {"enum": [*(each.value for each in Verdict), None]},
        "asked_by": {"type": "array", "items": text},
        "layout": {"const": LAYOUT},
        "exact": {"type": "object"},
        "digests": {"type": "object", "additionalProperties": text},
    }
    properties |= {"asked_of": properties["digests"]} if KINDS[kind].asks_alone else {}
    properties = {key: _saying(each, _GLOSSARY[key]) for key, each in properties.items()}
    needed = ["schema", "answer", "layout", "digests"]
    if kind == "head":  # of some all is known, of others what the model returned
        own: Schema = {"anyOf": [_reference(each, objects) for each in (HeadWeights, HeadAttention)]}
    else:
        own = _fields(KINDS[kind], objects)
        properties, needed = properties | own.pop("properties"), needed + own.pop("required")
    whole = {"$schema": DIALECT, "$id": called, "title": called, "type": "object"}
    return whole | own | {"properties": properties, "required": needed, "$defs": objects}


def _listing(kind: str) -> Schema:
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


def _fields(kind: Any, objects: dict[str, Schema]) -> Schema:
    said = _said(kind)
    properties: dict[str, Schema] = {}
    needed: list[str] = []
    for slot in slots(kind):
        for key, schema, always in _keys(slot, objects):
            whole = slot.spread or slot.holds_tokens
            properties[key] = schema if whole else _saying(schema, said.get(key) or _else(key, slot.hint))
            needed += [key] if always else []
    for name in getattr(kind, "for_readers", ()):
        getter = getattr(kind, name)
        getter = getattr(getter, "fget", None) or getter.func
        schema = _of(get_type_hints(getter)["return"], objects)
        properties[name] = _saying(schema, said.get(name) or _summary(getter))
    return {"type": "object", "description": _summary(kind), "properties": properties, "required": needed}


def _saying(schema: Schema, said: str) -> Schema:
    axes = schema.get("description")
    return schema | {"description": f"{axes}: {said}" if axes else said}


def _summary(kind: Any) -> str:
    """The first paragraph of a docstring, with fields named by their keys in files."""
    return _keyed(kind).partition("\n\n")[0].replace("\n", " ")


def _keyed(kind: Any) -> str:
    said, holds = inspect.getdoc(kind) or "", bool(is_dataclass(kind))
    for slot in slots(kind) if holds else ():
        said = re.sub(rf"`{slot.name}(?=[`[])", f"`{slot.key}", said)
    return said


def _said(kind: Any) -> dict[str, str]:
    said: dict[str, str] = {}
    owners: list[Any] = [each for each in kind.__mro__ if is_dataclass(each)]
    for owner in owners:
        keys = {slot.key for slot in slots(owner)} | {*getattr(owner, "for_readers", ())}
        said = {key: each for key, each in _sentences(_keyed(owner)).items() if key in keys} | said
    return said


def _sentences(text: str) -> dict[str, str]:
    """The sentences about each backticked name: those that contain it, and those after without a name."""
    said, about = dict[str, list[str]](), list[str]()
    for sentence in _SENTENCE.split(re.sub(r"\s+", " ", text)):
        about = _NAMED.findall(sentence) or about
        for key in dict.fromkeys(about):
            said.setdefault(key, []).append(sentence)
    return {key: " ".join(each) for key, each in said.items()}


def said_of(kind: Any, name: str) -> str:
    """The description of a field or property that has no own docstring and none in its class."""
    hints = get_type_hints(kind)
    if f"`{name}" in (inspect.getdoc(kind) or ""):
        return ""
    if name in hints:
        said = _said(kind).get(name, "")
        return said or _else(name, hints[name])
    getter = getattr(kind, name)
    return _else(name, get_type_hints(getattr(getter, "fget", None) or getter.func)["return"])


def _else(key: str, hint: Hint) -> str:
    kinds: list[Any] = [hint]
    while kinds:
        each = kinds.pop()
        if isinstance(each, type) and (is_dataclass(each) or issubclass(each, StrEnum)):
            return _summary(each)
        kinds += get_args(each)
    return _GLOSSARY.get(key, "")


_GLOSSARY = _sentences(
    """`schema` is the kind of document and its version. `answer` is the first line of the screen. `next` is
    a command that leads on. `verdict` is what is proved of the numbers, the worst of it; null where nothing
    is to be proved. `asked_by` is what it answers, as words of a command. `asked_of` is the SHA-256 of each
    file that this command names. `layout` says how fields are laid out, `exact` what strict JSON cannot
    hold, by JSON Pointer, and `digests` are hashes of keys and arrays. `layer` and `head` count from 0, as
    `layers` and `heads` do. `kind` is which attention of the model it is. `name` is what it is called,
    `label` the same in few words, `title` a heading. `module` is the path of the attention in the model.
    `tower` is the part of the model that the layers are of, empty where there is only one. `notes` are
    remarks on how it was read, `warnings` on what may have been meant otherwise. `text` is its text, to the
    letter. `query`, `key` and `position` are places of tokens, from 0. `seed` repeats what was drawn.
    `words` says whether rows and columns are words, of one or several tokens. `by` is what they are:
    tokens, words, sentences or passages. `probability` is from 0 to 1, as are `before` and `after`. `low`
    and `high` are the ends of a 95 % interval. `accuracy` is the share of pairs that are found. `count` is
    how many there are. `route` and `block` say how and in which of its blocks a layer was read. `shared`
    says whether both axes have the same tokens. `id` is its number in the vocabulary."""
)


def _keys(slot: Slot, objects: dict[str, Schema]) -> list[tuple[str, Schema, bool]]:
    if slot.holds_tokens:
        always = NoneType not in options(slot.hint)
        own = _tokens(objects)["properties"]
        found = [(slot.prefix + key, schema, always) for key, schema in own.items()]
        shared: Schema = {"type": "boolean", "description": _GLOSSARY["shared"]}
        return [*found, (f"{slot.prefix}shared", shared, False)]
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
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _single(kind: Hint, tagged: bool, objects: dict[str, Schema]) -> Schema:
    shape = form(kind)
    if shape is np.ndarray:
        return _array(kind)
    if shape is object:
        schema = _reference(kind, objects)
        tag = {"properties": {"of": {"const": kind.__name__.lower()}}, "required": ["of"]}
        return {"allOf": [schema, tag]} if tagged else schema
    if shape is tuple:
        kinds = get_args(kind)
        if kinds[1:] == (Ellipsis,):
            return {"type": "array", "items": _of(kinds[0], objects)}
        inner = [_of(each, objects) for each in kinds]
        return {"type": "array", "prefixItems": inner, "minItems": len(inner), "maxItems": len(inner)}
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


def _array(hint: Hint) -> Schema:
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
    schema = _fields(Tokens, objects)
    beside = {"position": "integer", "label": "string", "id": ["integer", "null"]}
    said = _sentences(_keyed(Token))
    objects[Token.__name__]["properties"] |= {
        key: _saying({"type": kind}, said[key]) for key, kind in beside.items()
    }
    return schema
