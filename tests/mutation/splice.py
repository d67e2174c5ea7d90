"""A changed function is put into a package that is loaded: its code is exchanged where it is in use."""

import gc
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType

Functions = dict[str, list[FunctionType]]  # by dotted name, those behind decorators too


def functions_of(paths: Iterable[Path]) -> dict[Path, Functions]:
    """Every function that is made of the code of one of these files."""
    found: dict[str, Functions] = {str(path): {} for path in paths}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in found:
            found[each.__code__.co_filename].setdefault(each.__code__.co_qualname, []).append(each)
    return {Path(path): functions for path, functions in found.items()}


def splice(path: Path, functions: Functions, changed: str, source: str) -> bool:
    """Exchange the code of the function `changed` for that in `source`; False where that cannot be done.

    It cannot where the change is felt by importing the module, or where several functions share a name.
    """
    codes: dict[str, list[CodeType]] = {}
    _gather(compile(source, str(path), "exec", dont_inherit=True), codes)
    parts = changed.split(".")
    outward = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    exchanged = False
    for name, new in codes.items():
        if name.replace(".<locals>", "") in outward and name in functions:
            if len(new) > 1 or any(old.__code__.co_freevars != new[0].co_freevars for old in functions[name]):
                return False
            for old in functions[name]:
                old.__code__ = new[0]
            exchanged = True
    return exchanged


def _gather(code: CodeType, into: dict[str, list[CodeType]]) -> None:
    """The code of all functions in compiled code, by dotted name."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            into.setdefault(each.co_qualname, []).append(each)
            _gather(each, into)
