"""What stands for a name of a module that is not loaded yet: that thing, as soon as anything is done with it.

Nothing here knows how a module is loaded: `real` is asked for what is stood for, and that loads it.
"""

import gc
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import CellType, FrameType, FunctionType
from typing import Any


class Meanwhile:
    """What is known of a thing that is stood for: how to get it, and whether it is there by itself by now."""

    def __init__(self, real: Callable[[], Any], there: Callable[[], Any]) -> None:
        """`real` loads it; `there` does not, and gives None where it would have to be loaded."""
        self.real, self.there = real, there
        self.caught_up: list[Callable[[Any], object]] = []

    def when_there(self, tell: Callable[[Any], object]) -> None:
        """Call `tell` with the real thing as soon as it has been loaded."""
        self.caught_up.append(tell)


Call = Callable[..., Any]
"""What a call of a name does meanwhile: `call(meanwhile, *given, **named)`, NotImplemented where only the
real thing will do."""


_ASKED_OF_THE_OBJECT = ("__mro_entries__", "__reduce_ex__")  # and not of its class, by what asks


class StandIn:
    """In the place of one class or function: whatever is done with it is done with the real one.

    One thing is known without it: of a class that does not exist there is no instance, so `isinstance` is
    False until then. What a `call` does meanwhile can be said for functions that only mark or wrap others.
    """

    __slots__ = ("_call", "_meanwhile", "_place")

    def __init__(self, place: str, meanwhile: Meanwhile, call: Call | None = None) -> None:
        """`place` as `module:name`."""
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_meanwhile", meanwhile)
        object.__setattr__(self, "_call", call)

    def __getattribute__(self, name: str) -> Any:
        if name in _ASKED_OF_THE_OBJECT:
            return object.__getattribute__(self, name)
        return getattr(_real(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_real(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_real(self), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        call: Call | None = object.__getattribute__(self, "_call")
        meanwhile = _of(self)
        if call is not None and meanwhile.there() is None:
            done = call(meanwhile, *given, **named)
            if done is not NotImplemented:
                return done
        return meanwhile.real()(*given, **named)

    def __instancecheck__(self, instance: object) -> bool:
        if type(instance) is StandIn:
            return isinstance(_real(instance), _real(self))
        kind = _of(self).there()
        return kind is not None and isinstance(instance, kind)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, _real(self))

    def __mro_entries__(self, _: object) -> tuple[Any, ...]:
        return (_real(self),)

    def __getitem__(self, item: Any) -> Any:
        return _real(self)[item]

    def __or__(self, other: Any) -> Any:
        return _real(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | _real(self)

    def __eq__(self, other: object) -> bool:
        return bool(_real(self) == other)

    def __hash__(self) -> int:
        return hash(_real(self))

    def __repr__(self) -> str:
        return repr(_real(self))

    def __dir__(self) -> list[str]:
        return dir(_real(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        from pkgutil import resolve_name

        place: str = object.__getattribute__(self, "_place")
        return (resolve_name, (place,)) if place else _real(self).__reduce_ex__(protocol)


def _of(standing: StandIn) -> Meanwhile:
    meanwhile: Meanwhile = object.__getattribute__(standing, "_meanwhile")
    return meanwhile


def _real(standing: StandIn) -> Any:
    return _of(standing).real()


def marks(meanwhile: Meanwhile, *given: Any, **named: Any) -> Any:
    """The call of a decorator that returns the function it is given, and only tells its module of it."""
    if named or [type(each) for each in given] != [FunctionType]:
        return NotImplemented
    meanwhile.when_there(lambda mark: mark(given[0]))
    return given[0]


def same_if_bool(_: Meanwhile, *given: Any, **named: Any) -> Any:
    """The call of a function that hands on True and False, and has work to do with anything else only."""
    return given[0] if not named and [type(each) for each in given] == [bool] else NotImplemented


def false_if_int(_: Meanwhile, *given: Any, **named: Any) -> Any:
    """The call of a function that says of a number whether it is of a special sort, which no `int` is."""
    return False if not named and [type(each) for each in given] == [int] else NotImplemented


def wraps_when_there(meanwhile: Meanwhile, function: Any = None, *given: Any, **named: Any) -> Any:
    """The call of a decorator that keeps something from a function which is only there when its module is."""
    if type(function) is not FunctionType:
        return NotImplemented
    wrapped: list[Call] = []

    @wraps(function)
    def called(*values: Any, **settings: Any) -> Any:
        if meanwhile.there() is None:
            return function(*values, **settings)
        if not wrapped:
            wrapped.append(meanwhile.real()(function, *given, **named))
        return wrapped[0](*values, **settings)

    return called


def made_when_used(meanwhile: Meanwhile, *given: Any, **named: Any) -> Any:
    """The call of a class whose instances are kept for later: a stand-in for the one that is asked for."""
    made: list[Any] = []

    def make() -> Any:
        if not made:
            made.append(meanwhile.real()(*given, **named))
        return made[0]

    standing = StandIn("", Meanwhile(make, lambda: made[0] if made else None))
    meanwhile.when_there(lambda _: catch_up((standing,)))
    return standing


def catch_up(standing: tuple[StandIn, ...]) -> None:
    """When the real things are there: tell them what they were to be told, put them where stand-ins were."""
    for each in standing:
        meanwhile = _of(each)
        while meanwhile.caught_up:
            meanwhile.caught_up.pop(0)(meanwhile.real())
    real = {id(each): _real(each) for each in standing}
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # what is frozen is not found among those that refer to something
    for holder in gc.get_referrers(*standing):
        if holder is not standing:
            _put(real, holder)
    if frozen:
        gc.freeze()


def _put(real: Mapping[int, Any], holder: Any) -> None:
    """Real things in place of what stood for them: in a namespace, a list, a closure, or an object."""
    if type(holder) is list:
        holder[:] = [real.get(id(each), each) for each in holder]
    elif type(holder) is dict:
        _put_by_name(real, holder, holder.__setitem__)
    elif type(holder) is CellType:
        holder.cell_contents = real.get(id(holder.cell_contents), holder.cell_contents)
    elif isinstance(holder, type):
        _put_by_name(real, vars(holder), partial(setattr, holder))
    elif type(holder) not in (StandIn, FrameType) and hasattr(holder, "__dict__"):
        _put_by_name(real, vars(holder), partial(object.__setattr__, holder))


def _put_by_name(real: Mapping[int, Any], names: Mapping[Any, Any], put: Callable[[Any, Any], None]) -> None:
    for name, value in list(names.items()):
        if type(value) is StandIn and id(value) in real:
            put(name, real[id(value)])
