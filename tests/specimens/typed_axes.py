"""Types are enforced while tests run: axes by jaxtyping, all else by beartype alone.

jaxtyping binds the arguments of every call anew, which took half of the time of many tests, since most
functions have no axes at all. So it is given only those that have some.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, install_import_hook

_with_axes = jaxtyping.jaxtyped
_plainly = beartype(conf=BeartypeConf(violation_type=TypeCheckError))


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
        return _with_axes(made, typechecker=typechecker)
    made.__annotations__ = hints
    return _plainly(made)


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
