"""Whose fault an error is: what the model raises unwatched too comes of its input, all else is a bug."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from attnscope.capture.evaluation_mode import evaluating
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.inputs.generation import Settings, write


@contextmanager
def if_it_runs(model: nn.Module, inputs: Mapping[str, Any], name: str) -> Iterator[None]:
    """Around reading a model: `InputError` in one line where the model called `name` does not run at all.

    That is found out by running it once more with nothing watching. Any other error passes through.
    """
    with _unless_alone(model, lambda: model(**inputs), f"{name} cannot run on this input"):
        yield


@contextmanager
def if_it_writes(
    model: nn.Module, inputs: Mapping[str, Any], settings: Settings, name: str
) -> Iterator[None]:
    """The same around a model that goes on with its inputs: a checkpoint's own settings may stop it."""
    with _unless_alone(model, lambda: write(model, inputs, settings, name), f"{name} does not write on"):
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
    """What the model raises by itself; None where it runs."""
    try:
        with evaluating(model):
            run()
    except Exception as error:
        return type(error), str(error)
    return None
