"""Where each result registers how it is written and read: `document`, `arrays_of`, `reads`."""

from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

from attnscope.results.result import Result
from attnscope.results.stored.codec.record import Arrays, Record
from attnscope.results.stored.codec.strict import Value

Reader = Callable[[Record], Result]
Made = TypeVar("Made", bound=Reader)
READERS: dict[str, Reader] = {}


@singledispatch
def document(result: Result, arrays: bool = True) -> dict[str, Value]:
    """The result as plain values, arrays among them; without `arrays` only what describes them."""
    raise NotImplementedError(type(result))


@singledispatch
def arrays_of(result: Result) -> Arrays:
    """The arrays by name, as an npz holds them beside the document without arrays."""
    raise NotImplementedError(type(result))


def reads(schema: str) -> Callable[[Made], Made]:
    """Registers the function that makes a result from a record of this schema."""

    def register(reader: Made) -> Made:
        READERS[schema] = reader
        return reader

    return register
