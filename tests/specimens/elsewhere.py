"""This system as if it were Windows or macOS, in the eyes of attnscope's own code.

What another system has is not written down here: it is read off the standard library's stubs that come
with mypy. A module of which that system has nothing cannot be imported, one of which it has less lacks the
rest, and `sys.platform` says its name. No file of /proc, /sys or /dev can be opened or found, by anybody; nor
can a process fork. What other libraries do on the other system cannot be seen from here.

    install("win32")  # in a process of its own, before attnscope is imported
"""

import ast
import builtins
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_LINUX_ONLY = ("/proc/", "/sys/", "/dev/")
_LEFT = ("/dev/null", "/dev/urandom")


@cache
def names(module: str, platform: str) -> frozenset[str]:
    """The public names that a module of the standard library has on a platform; none where there is none."""
    mypy = find_spec("mypy")
    assert mypy is not None, "the stubs come with it"
    assert mypy.submodule_search_locations
    stubs = Path(mypy.submodule_search_locations[0], "typeshed", "stdlib")
    inside = stubs.joinpath(*module.split("."))
    for file in (inside.with_suffix(".pyi"), inside / "__init__.pyi"):
        if file.is_file():
            body = ast.parse(file.read_text("utf-8")).body
            return frozenset(name for name in _defined(body, platform) if not name.startswith("_"))
    return frozenset()


def _defined(body: list[ast.stmt], platform: str) -> Iterator[str]:
    for each in body:
        if isinstance(each, ast.If):
            yield from _defined(each.body if _holds(each.test, platform) else each.orelse, platform)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
        elif isinstance(each, ast.Assign):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))
        elif isinstance(each, ast.ImportFrom):
            yield from (alias.asname for alias in each.names if alias.asname == alias.name)


def _holds(test: ast.expr, platform: str) -> bool:
    system = ModuleType("sys")
    system.platform, system.version_info = platform, sys.version_info  # type: ignore[attr-defined]
    return bool(eval(ast.unparse(test), {"sys": system, "TYPE_CHECKING": False}))


class Less(ModuleType):
    """A module without what the other system does not have; what is set on it is set on the real one."""

    def __init__(self, real: ModuleType, platform: str) -> None:
        own = vars(self)
        own["_real"], own["_platform"] = real, platform
        own["_gone"] = names(real.__name__, "linux") - names(real.__name__, platform)

    def __getattr__(self, name: str) -> Any:
        if name == "platform" and self._real is sys:
            return self._platform
        if name in self._gone:
            raise AttributeError(
                f"module '{self._real.__name__}' has no attribute '{name}' on {self._platform}"
            )
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


def install(platform: str) -> None:
    """From now on what attnscope imports is what `platform`, as `sys.platform` calls it, has of it."""
    usual, stat = builtins.__import__, os.stat

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        found = usual(name, globals, locals, fromlist, level)
        asker = (globals or {}).get("__package__") or ""
        if level or asker.partition(".")[0] != "attnscope":
            return found
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names or not names(name, "linux"):
            return found
        if not names(name, platform):
            raise ModuleNotFoundError(f"No module named '{name}' on {platform}", name=name)
        whole = "." in name and not fromlist
        return found if whole or not _differs(name, platform) else Less(found, platform)

    def refused(event: str, told: tuple[Any, ...]) -> None:
        if event == "open" and _is_linux_only(told[0]):
            raise FileNotFoundError(2, f"No such file on {platform}", told[0])
        if event in ("os.fork", "os.forkpty"):
            raise OSError(f"no fork on {platform}")

    def not_there(path: Any, *given: Any, **named: Any) -> Any:
        if _is_linux_only(path):
            raise FileNotFoundError(2, f"No such file on {platform}", path)
        return stat(path, *given, **named)

    builtins.__import__ = importing
    os.stat = not_there
    sys.addaudithook(refused)


def _differs(name: str, platform: str) -> bool:
    return name == "sys" or bool(names(name, "linux") - names(name, platform))


def _is_linux_only(path: Any) -> bool:
    if isinstance(path, int):
        return False
    told = os.fsdecode(path)
    return told.startswith(_LINUX_ONLY) and told not in _LEFT
