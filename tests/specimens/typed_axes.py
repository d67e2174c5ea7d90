"""Axes are enforced while tests run, by jaxtyping; with `ATTNSCOPE_TYPES=all` other types too, by beartype.

What has no axes is mypy's to check: to check it once more at every call took a fifth of the suite.
jaxtyping binds the arguments of every call anew and measures every array, which took half of the time of
many tests. So it is given only the functions that have axes, and of those only the calls whose arrays have
shapes and types that the function was not yet called with.
"""

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException
from jaxtyping import AbstractArray, TypeCheckError, install_import_hook

EVERY_TYPE = os.environ.get("ATTNSCOPE_TYPES") == "all"  # the gate asks for it with the slow tests
_with_axes = jaxtyping.jaxtyped
_plainly = beartype(conf=BeartypeConf(violation_type=TypeCheckError, is_pep484_tower=True))


def enforce(modules: Iterable[str]) -> None:
    """Check every function and dataclass of `modules` from now on; before the first import of any."""
    jaxtyping.jaxtyped = _checked  # what the hook writes over every function
    install_import_hook(list(modules), "beartype.beartype")


def _checked(made: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    if made is None:
        return partial(_checked, typechecker=typechecker)
    if inspect.isclass(made):
        if dataclasses.is_dataclass(made) and "__init__" in vars(made):
            made.__init__ = _checked(made.__init__, typechecker=typechecker)
        return made
    hints = {name: _resolved(hint, made.__globals__) for name, hint in made.__annotations__.items()}
    if any(map(_has_axes, hints.values())):
        return _once_for_each_shape(made, _with_axes(made, typechecker=typechecker))
    if not EVERY_TYPE:
        return made
    made.__annotations__ = hints
    try:
        return _plainly(made)
    except BeartypeDecorHintException:
        return made  # a protocol that says nothing while it runs


def _once_for_each_shape(made: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    """`made`, called through `checked` where the shapes of the arguments are new."""
    seen = set()

    @wraps(made)
    def called(*values: Any, **named: Any) -> Any:
        shapes = (*map(_shape, values), *((name, _shape(value)) for name, value in named.items()))
        if shapes in seen:
            return made(*values, **named)
        result = checked(*values, **named)
        seen.add(shapes)
        return result

    return called


def _shape(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return (type(value), *map(_shape, value))
    return type(value), getattr(value, "shape", None), getattr(value, "dtype", None)


def _resolved(hint: Any, names: dict[str, Any]) -> Any:
    """A hint that is written as text made a type; `Any` where it names what is not there while it runs."""
    try:
        return eval(hint, names) if isinstance(hint, str) else hint
    except Exception:
        return Any


def _has_axes(hint: Any) -> bool:
    if isinstance(hint, list):
        return any(map(_has_axes, hint))
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(_has_axes, get_args(hint)))
