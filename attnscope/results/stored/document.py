"""Results as plain values and back: between the two stands the codec alone."""

import re
from typing import Any

from attnscope.errors import Damaged, InputError
from attnscope.results.base.parts import Arrays, Value
from attnscope.results.heads import HeadAttention
from attnscope.results.result import KINDS, Result
from attnscope.results.stored.codec import Place, made, written
from attnscope.results.stored.strict import LAYOUT, exactly
from attnscope.tokens import printable

_NAMES = {kind: name for name, kind in KINDS.items()} | {HeadAttention: "head"}
_SCHEMA = re.compile(r"attnscope\.([a-z-]{1,40})/([0-9]{1,9})")
NO_RESULT = "is no result of attnscope"


def schema(result: Result) -> str:
    """What a file says that it is: `attnscope.head/1`."""
    return f"attnscope.{_NAMES[type(result)]}/1"


def document(result: Result, *, npz: bool = False) -> dict[str, Value]:
    """The result as plain values with its arrays among them, with `npz` also those that JSON leaves out."""
    told: dict[str, Value] = written(result, npz=npz)
    return {"schema": schema(result)} | told


def restored(told: Any, arrays: Arrays | None, name: str) -> Result:
    """The result of a document and its arrays, by its schema; `name` is what an error calls it."""
    said = told.get("schema") if isinstance(told, dict) else None
    match = _SCHEMA.fullmatch(said) if isinstance(said, str) else None
    if match is None:
        raise InputError(f"'{name}' {NO_RESULT}: it has no schema of its")
    _check_known(match, told.get("layout"), name)
    try:
        return of_document(told, arrays)
    except Damaged as error:
        raise InputError(f"'{name}' is damaged: {printable(str(error))}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"'{name}' is damaged: its parts do not fit together") from error


def of_document(told: dict[str, Value], arrays: Arrays | None) -> Result:
    """The same of a document that this attnscope knows; what is wrong with it is `Damaged`."""
    plain = exactly(told)
    kind = KINDS[plain["schema"].removeprefix("attnscope.").partition("/")[0]]
    own = {key: value for key, value in plain.items() if key not in ("schema", "layout")}
    result: Result = made(kind, own, Place("", arrays, {}))
    return result


def _check_known(match: re.Match[str], layout: Value, name: str) -> None:
    """Raises `InputError` for a schema or a layout that this attnscope does not know."""
    kind, version = match[1], int(match[2])
    if kind not in KINDS or version < 1:
        kinds = ", ".join(KINDS)
        raise InputError(f"'{name}' is {match[0]}, which this attnscope does not know: it reads {kinds}")
    if version > 1:
        newer = f"it is {match[0]}, this one reads attnscope.{kind}/1"
        raise InputError(f"'{name}' was written by a newer attnscope: {newer}")
    if layout != LAYOUT:
        raise InputError(f"'{name}' was written by another attnscope: its layout is {layout!r}, not {LAYOUT}")
