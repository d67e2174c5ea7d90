"""The presenter of results, set by `attnscope` on import, so that results import no rendering."""

from types import ModuleType

TYPE_CHECKING = False  # as in `attnscope`, which imports this
if TYPE_CHECKING:
    from collections.abc import Callable

load: "Callable[[], ModuleType]"
