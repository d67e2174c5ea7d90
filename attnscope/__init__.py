"""attnscope: what a pretrained transformer attends to, shown and proved.

    import attnscope as at

    head = at.load("bert-base-uncased").read("I was watching the [MASK] when it opened.").head(3, 11)

Importing this imports nothing heavy: each public name is loaded when it is first used.
"""

from attnscope import presenter
from attnscope.version import __version__ as __version__

TYPE_CHECKING = False  # as `typing` has it, whose import alone takes longer than all of this

_HOMES = {
    "load": "attnscope.library.entrance",
    "wrap": "attnscope.library.entrance",
    "Model": "attnscope.library.models",
    "Reading": "attnscope.library.readings",
    "open": "attnscope.results",
    "AttnscopeError": "attnscope.errors",
}
_NAMES = {"open": "load"}  # where a name is another one at home

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from attnscope.errors import AttnscopeError as AttnscopeError
    from attnscope.library.entrance import load as load
    from attnscope.library.entrance import wrap as wrap
    from attnscope.library.models import Model as Model
    from attnscope.library.readings import Reading as Reading
    from attnscope.library.typed import compare as compare
    from attnscope.library.typed import corpus as corpus
    from attnscope.library.typed import difference as difference
    from attnscope.library.typed import outline as outline
    from attnscope.library.typed import sdpa as sdpa
    from attnscope.results import load as _open

    open = _open


def __getattr__(name: str) -> "Any":
    from importlib import import_module
    from importlib.util import find_spec

    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), _NAMES.get(name, name))
        globals()[name] = found
        return found
    if name == "__all__" or not (name.startswith("_") or find_spec(f"attnscope.{name}")):
        register = import_module("attnscope.register")
        functions = register.in_library()
        if name == "__all__":
            return sorted({*_HOMES, "__version__", *(each for each in functions if "." not in each)})
        if name in functions and "." not in name:
            found = globals()[name] = register.there(functions[name])
            return found
    raise AttributeError(f"module 'attnscope' has no attribute '{name}'")


def _presenter() -> "ModuleType":
    from importlib import import_module

    return import_module("attnscope.render.present")


presenter.load = _presenter


def __dir__() -> list[str]:
    return sorted({*globals(), "__all__", *__getattr__("__all__")})
