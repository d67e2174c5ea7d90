"""What Python would import, and something to be done when a module has been imported."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def found_by_others(finder: object, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The module as it is found by all finders of this process but `finder`."""
    for other in list(sys.meta_path):
        if other is not finder and hasattr(other, "find_spec"):
            spec = other.find_spec(name, path, None)
            if spec is not None:
                return spec
    return None


class Answering:
    """A loader in the place of another one, which it asks for everything but what is said here."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None


class WhenImported:
    """A finder that calls `then` with the module `name` when it has been imported, before anybody sees it."""

    def __init__(self, name: str, then: Callable[[ModuleType], object]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = found_by_others(self, name, path)
        if spec is not None and spec.loader is not None:
            loader: Any = _Then(spec, self._then)
            spec.loader = loader
        return spec


class _Then(Answering):
    def __init__(self, spec: ModuleSpec, then: Callable[[ModuleType], object]) -> None:
        super().__init__(spec.loader)
        self._spec, self._then = spec, then

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then(module)
