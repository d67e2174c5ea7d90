"""Modules that are imported and not needed, loaded when something asks for them: how, not which.

A module that is put off is its own object from the start: it stands in `sys.modules`, and when it is asked
for anything but where it comes from, Python's own import fills that very object, under Python's own locks.
What other code takes out of it by name (`from x import y`) is a stand-in where `y` is expected, and is put
out of the way as soon as `x` is loaded. There is one only for names that are expected and stand in the source
of `x`. Nothing is put off that was loaded before: what is not understood is imported as ever.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from threading import Lock
from types import ModuleType
from typing import Any

from attnscope.startup.finding import Answering, found_by_others
from attnscope.startup.standing import Call, Meanwhile, StandIn, catch_up

_OF_THE_IMPORT = frozenset(
    ("__class__", "__name__", "__spec__", "__loader__", "__package__", "__path__", "__file__", "__cached__")
)  # what says where a module comes from: Python's import and `inspect` ask it of whatever is there


@dataclass(frozen=True)
class PutOff:
    """What may be asked of a module while it is put off.

    `names` get a stand-in, and so have `calls` one, of which it is also known what a call does meanwhile.
    `inside` are modules of the package that are put off with it.
    """

    names: Sequence[str] = ()
    calls: Mapping[str, Call] = field(default_factory=dict)
    inside: Mapping[str, "PutOff"] = field(default_factory=dict)

    @property
    def expected(self) -> tuple[str, ...]:
        return (*self.names, *self.calls)


@dataclass(eq=False)
class _Waiting:
    """A module that is put off, and whether it is still."""

    spec: ModuleSpec
    expected: Mapping[str, Call | None]  # of these names it is known that the module has them
    package: "_Waiting | None"
    module: "Deferred"
    inside: "list[_Waiting]" = field(default_factory=list)
    standing: dict[str, StandIn] = field(default_factory=dict)
    due: bool = False  # from the first question on
    filled: bool = False

    def family(self) -> "Iterator[_Waiting]":
        yield self
        for each in self.inside:
            yield from each.family()

    def stand_in(self, name: str) -> StandIn | None:
        """What stands for `name`; None where it is not expected, or the module is being loaded."""
        if self.due or name not in self.expected:
            return None
        if name not in self.standing:
            meanwhile = Meanwhile(lambda: getattr(self.load(), name), lambda: self._there(name))
            place = f"{self.spec.name}:{name}"
            self.standing[name] = StandIn(place, meanwhile, self.expected[name])
        return self.standing[name]

    def _there(self, name: str) -> Any:
        """What the module has of that name by now, without loading it."""
        return ModuleType.__getattribute__(self.module, "__dict__").get(name) if self.due else None

    def load(self) -> ModuleType:
        """The module, loaded by Python's import, its package before it."""
        if self.package is not None:
            self.package.load()
        self._become_due()
        return import_module(self.spec.name)

    def _become_due(self) -> None:
        """From now on nothing of it is put off any more: Python's import finds none of it, and loads it."""
        with _once:
            if not self.due:
                for each in self.family():
                    each.due = True
                    if sys.modules.get(each.spec.name) is each.module:
                        del sys.modules[each.spec.name]

    def fill(self, loader: Any) -> None:
        """Run the module's own code, as its import does; then nothing is left of its having been put off."""
        global _filling
        self.spec.loader = self.module.__loader__ = loader
        _filling += 1
        try:
            loader.exec_module(self.module)
        finally:
            _filling -= 1
        self.filled = True
        if type(self.module) is Deferred:
            object.__setattr__(self.module, "__class__", ModuleType)
        standing = tuple(self.standing.values())
        self.standing.clear()
        catch_up(standing)


_once = Lock()
_filling = 0  # modules that are being loaded by now: meanwhile nothing else is put off
_waiting: dict[str, _Waiting] = {}


class Deferred(ModuleType):
    """A module that is not loaded yet, and an ordinary one as soon as it is."""

    def __getattribute__(self, name: str) -> Any:
        known = super().__getattribute__
        if name in _OF_THE_IMPORT:
            return known(name)
        waiting = _waiting[known("__name__")]
        if (standing := waiting.stand_in(name)) is not None:
            return standing
        loaded = waiting.load()
        return known(name) if loaded is self else getattr(loaded, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _OF_THE_IMPORT:
            _waiting[self.__name__].load()
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _waiting[self.__name__].load()
        ModuleType.__delattr__(self, name)


class _Reading(Answering):
    """The loader of a module that is put off."""

    def __init__(self, waiting: _Waiting) -> None:
        super().__init__(waiting.spec.loader)
        self._waiting = waiting

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._waiting.module


class _PuttingOff(_Reading):
    """What Python's import calls where it would load the module."""

    def exec_module(self, module: ModuleType) -> None:
        for each in self._waiting.family():
            each.module.__spec__, each.module.__loader__ = each.spec, each.spec.loader
            sys.modules[each.spec.name] = each.module


class _Filling(_Reading):
    """What Python's import calls when the module has become due."""

    def exec_module(self, module: ModuleType) -> None:
        self._waiting.fill(self._loader)


class _There(Answering):
    """For a module that was imported while it was looked for."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__loader__)
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class PuttingOff:
    """Stands before Python's own finders, and puts off what it is told to, by name."""

    def __init__(self, modules: Mapping[str, PutOff]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        waiting = _waiting.get(name)
        if waiting is not None:
            return None if waiting.filled else self._of(waiting)
        package = _waiting.get(name.rpartition(".")[0])
        if package is not None and not package.due:
            package.load()  # as of any package whose module is imported
            there = sys.modules.get(name)
            if there is None:
                return None
            loader: Any = _There(there)
            return ModuleSpec(name, loader)
        if name not in self._modules or _filling:
            return None
        waiting = self._put_off(name, self._modules[name], path, None)
        return None if waiting is None else self._of(waiting)

    def _of(self, waiting: _Waiting) -> ModuleSpec:
        """The spec by which the import puts the module off, or fills it."""
        if waiting.due:
            loader: Any = _Filling(waiting)
            waiting.spec.loader = loader
            return waiting.spec
        loader = _PuttingOff(waiting)
        spec = ModuleSpec(waiting.spec.name, loader, origin=waiting.spec.origin)
        spec.submodule_search_locations = waiting.spec.submodule_search_locations
        spec.has_location, spec.cached = waiting.spec.has_location, waiting.spec.cached
        return spec

    def _put_off(
        self, name: str, put_off: PutOff, path: Sequence[str] | None, package: _Waiting | None
    ) -> _Waiting | None:
        """The module and what is inside it, ready to be put off; None where it has to be imported as ever."""
        spec = found_by_others(self, name, path)
        source = None if spec is None else _source(spec)
        if spec is None or source is None:
            return None
        expected = {each: put_off.calls.get(each) for each in put_off.expected if each in source}
        made = _Waiting(spec, expected, package, Deferred(name))
        module_from_spec(self._of(made))  # tells the module where it comes from
        for inner, what in put_off.inside.items():
            within = self._put_off(f"{name}.{inner}", what, spec.submodule_search_locations, made)
            if within is not None:
                made.inside.append(within)
        _waiting[name] = made
        return made


def _source(spec: ModuleSpec) -> str | None:
    """The text of a module that is a file of Python, None of any other."""
    read = getattr(spec.loader, "get_source", None)
    if read is None or not spec.has_location:
        return None
    try:
        text: str | None = read(spec.name)
    except (ImportError, OSError, SyntaxError):
        return None
    return text
