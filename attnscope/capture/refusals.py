"""A model that runs on other inputs, or with other answers, than it was made for: it may refuse.

with running_again():
    model(**other_inputs)  # what its code raises becomes `Refused`; what a hook of `ours` raises does not
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from attnscope.errors import InputError

_REFUSALS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    InputError,
)
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class Refused(Exception):
    """The model does not run on what it was not made for."""


class _Bug(Exception):
    """Something went wrong in a hook of ours."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def ours(hook: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The same hook, whose errors are not taken for the model's."""

    @wraps(hook)
    def hooked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return hook(*args, **kwargs)
        except _REFUSALS as error:
            raise _Bug(error) from error

    return hooked


@contextmanager
def running_again() -> Iterator[None]:
    """While open, errors of the model's own code are raised as `Refused`, and those of `ours` as they are."""
    try:
        yield
    except _Bug as bug:
        raise bug.error from None
    except _REFUSALS as error:
        raise Refused(str(error)) from error
