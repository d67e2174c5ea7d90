"""Whose fault an error is: what the model raises unwatched too comes of its input, all else is a bug."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from attnscope.capture.evaluation_mode import evaluating
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line


@contextmanager
def if_it_runs(model: nn.Module, inputs: Mapping[str, Any], name: str) -> Iterator[None]:
    """Around reading a model: `InputError` in one line where the model called `name` does not run at all.

    That is found out by running it once more with nothing watching. Any other error passes through.
    """
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:
        if not is_out_of_memory(error) and _alone(model, inputs) == (type(error), str(error)):
            raise InputError(f"{name} cannot run on this input: {one_line(error)}") from error
        raise


def _alone(model: nn.Module, inputs: Mapping[str, Any]) -> tuple[type[Exception], str] | None:
    """What the model raises by itself; None where it runs."""
    try:
        with evaluating(model):
            model(**inputs)
    except Exception as error:
        return type(error), str(error)
    return None
