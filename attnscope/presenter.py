"""Who shows results: named by `attnscope` when it is imported; results ask here and know no rendering."""

from types import ModuleType

TYPE_CHECKING = False  # as in `attnscope`, which imports this
if TYPE_CHECKING:
    from collections.abc import Callable

load: "Callable[[], ModuleType]"
