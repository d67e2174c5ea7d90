"""How a module's own code gets at its attention function, read off its compiled code; nothing is run."""

import inspect
from typing import Any


def asks_interface(module_class: type) -> bool:
    """Whether its forward asks transformers' interface for the function, which then can be stood in for."""
    return "get_interface" in _names(module_class)


def looks_up_by_hand(module_class: type) -> bool:
    """Whether its forward looks other kernels up in the interface, but has its own eager one at hand.

    Code of this older style, mostly from a model's own repository, never asks for a function called eager.
    """
    names = _names(module_class)
    asked_for_an_attribute = "getattr" in names  # which finds none of that name, whatever the name is
    return "ALL_ATTENTION_FUNCTIONS" in names and "get_interface" not in names and not asked_for_an_attribute


def _names(module_class: type) -> tuple[str, ...]:
    forward: Any = inspect.unwrap(getattr(module_class, "forward", module_class))
    code = getattr(forward, "__code__", None)
    return code.co_names if code else ()
