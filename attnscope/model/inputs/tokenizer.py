"""A checkpoint's tokenizer behind one door: what it cannot do for damage is said in one line.

Much of what is wrong with a tokenizer's files shows only when a text is read: a lost `[UNK]`, an id that no
token has. All that is asked of a tokenizer passes here, so no caller need know what the library raises.
"""

from collections.abc import Callable
from typing import Any

from attnscope.errors import calling

REMEDY = "; its tokenizer files may be damaged: take them anew from where the model came from"
_NOTHING = object()


class Tokenizer:
    """Stands for `own`, a tokenizer of transformers, that came with the model called `name`.

    Raises `ModelUnavailableError` in one line where the library fails.
    """

    def __init__(self, own: Any, name: str) -> None:
        self._own, self._name = own, name

    @property
    def own(self) -> Any:
        """The library's tokenizer itself."""
        return self._own

    def __call__(self, *texts: str, **options: Any) -> Any:
        return self._asked("this text", self._own, *texts, **options)

    def __len__(self) -> int:
        return int(self._asked("its own length", self._own.__len__))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # also where a copy is being made, which has nothing in it yet
            raise AttributeError(attribute)
        value = self._asked(attribute, getattr, self._own, attribute, _NOTHING)
        if value is _NOTHING:
            raise AttributeError(f"{type(self._own).__name__} has no {attribute}")
        if not callable(value):
            return value
        return lambda *given, **options: self._asked(attribute, value, *given, **options)

    def _asked(self, what: str, answer: Callable[..., Any], *given: Any, **options: Any) -> Any:
        with calling(f"{self._name}: its tokenizer fails at {what}", REMEDY):
            return answer(*given, **options)


class Settled(Tokenizer):
    """A tokenizer that nobody changes any more: what it says of itself is asked once."""

    def __getattr__(self, attribute: str) -> Any:
        value = super().__getattr__(attribute)
        if not callable(value):
            self.__dict__[attribute] = value  # found there from now on, without coming here
        return value

    @classmethod
    def of(cls, tokenizer: Any) -> Any:
        """`tokenizer` itself where it is none of these."""
        return cls(tokenizer._own, tokenizer._name) if isinstance(tokenizer, Tokenizer) else tokenizer
