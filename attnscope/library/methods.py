"""Adds a method to the library's classes for every question of the registered verbs."""

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

from attnscope.register import in_library, registered, there
from attnscope.session.question import asks, either

T = TypeVar("T")


def with_questions(owner: type[T], asked: Callable[..., Any] = asks) -> type[T]:
    """Add to class `owner` a method for each question that lists one; `asked` makes the method."""
    found: dict[str, list[Any]] = {}
    for verb in registered().values():
        for question in verb.questions:
            for method in (place for place in question.METHODS if place.startswith(f"{owner.__name__}.")):
                found.setdefault(method, []).append(asked(question))
    for method, forms in found.items():
        reduce(either, forms).__set_name__(owner, method.partition(".")[2])
    for method, place in in_library().items():
        of, _, name = method.partition(".")
        if of == owner.__name__:
            function = there(place)
            function.__qualname__, function.__module__ = method, owner.__module__
            setattr(owner, name, function)
    return owner
