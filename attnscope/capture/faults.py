"""Whose fault an error is: what the model raises unwatched too comes of its input, all else is a bug.

A model that runs on other inputs, or with other answers, than it was made for may refuse:

    with running_again(model):
        model(**other_inputs)  # what its code raises becomes `Refused`; what a hook of `ours` raises does not
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from torch import nn

from attnscope.capture.cards import InBounds, cards_of
from attnscope.capture.evaluation_mode import evaluating
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.inputs.generation import write

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


@contextmanager
def if_it_runs(model: nn.Module, inputs: Mapping[str, Any], name: str) -> Iterator[None]:
    """Around reading a model: `InputError` in one line where the model called `name` does not run at all.

    That is found out by running it once more with nothing watching. Any other error passes through.
    """
    with _unless_alone(model, lambda: model(**inputs), f"{name} cannot run on this input"):
        yield


@contextmanager
def if_it_writes(model: nn.Module, inputs: Mapping[str, Any], most: int, name: str) -> Iterator[None]:
    """Like `if_it_runs`, around a model that writes: a checkpoint's own settings may stop it."""
    with _unless_alone(model, lambda: write(model, inputs, most, name), f"{name} does not write on"):
        yield


@contextmanager
def _unless_alone(model: nn.Module, run: Callable[[], Any], refusal: str) -> Iterator[None]:
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:
        if not is_out_of_memory(error) and _alone(model, run) == (type(error), str(error)):
            raise InputError(f"{refusal}: {one_line(error)}") from error
        raise


def _alone(model: nn.Module, run: Callable[[], Any]) -> tuple[type[Exception], str] | None:
    try:
        with evaluating(model):
            run()
    except Exception as error:
        return type(error), str(error)
    return None


class Refused(Exception):
    """The model does not run on what it was not made for."""


class _Bug(Exception):
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
def running_again(model: nn.Module) -> Iterator[None]:
    """While open, errors of the model's own code are raised as `Refused`, and those of `ours` as they are."""
    try:
        with InBounds() if cards_of(model) else nullcontext():
            yield
    except _Bug as bug:
        raise bug.error from None
    except _REFUSALS as error:
        raise Refused(str(error)) from error
