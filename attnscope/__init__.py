"""attnscope: what a pretrained transformer attends to, shown and proved.

    import attnscope as at

    head = at.load("bert-base-uncased").read("I was watching the [MASK] when it opened.").head(3, 11)

Importing this imports nothing heavy: each public name is loaded when it is first used.
"""

from attnscope import presenter
from attnscope.version import __version__

TYPE_CHECKING = False  # as `typing` has it, whose import alone takes longer than all of this

_HOMES = {
    "load": "attnscope.library.entrance",
    "wrap": "attnscope.library.entrance",
    "compare": "attnscope.library.several",
    "difference": "attnscope.library.several",
    "corpus": "attnscope.library.several",
    "outline": "attnscope.library.entrance",
    "Model": "attnscope.library.models",
    "Reading": "attnscope.library.readings",
    "open": "attnscope.results",
    "sdpa": "attnscope.verbs.sdpa.attention",
    "AttnscopeError": "attnscope.errors",
}
_NAMES = {"open": "load"}  # where a name is another one at home

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from attnscope.errors import AttnscopeError as AttnscopeError
    from attnscope.library.entrance import load as load
    from attnscope.library.entrance import outline as outline
    from attnscope.library.entrance import wrap as wrap
    from attnscope.library.models import Model as Model
    from attnscope.library.readings import Reading as Reading
    from attnscope.library.several import compare as compare
    from attnscope.library.several import corpus as corpus
    from attnscope.library.several import difference as difference
    from attnscope.results import load as open
    from attnscope.verbs.sdpa.attention import sdpa as sdpa

__all__ = [
    "AttnscopeError",
    "Model",
    "Reading",
    "__version__",
    "compare",
    "corpus",
    "difference",
    "load",
    "open",
    "outline",
    "sdpa",
    "wrap",
]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'attnscope' has no attribute '{name}'")
    from importlib import import_module

    found = getattr(import_module(_HOMES[name]), _NAMES.get(name, name))
    globals()[name] = found
    return found


def _presenter() -> "ModuleType":
    from importlib import import_module

    return import_module("attnscope.render.present")


presenter.load = _presenter


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
