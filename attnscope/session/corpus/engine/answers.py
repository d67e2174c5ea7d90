"""What a worker answers where it has no chunk file; apart from its program, whose names nobody can load."""

from dataclasses import dataclass

from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class Refused:
    """An error that the user can mend: nothing that another worker would do better."""

    error: AttnscopeError


@dataclass(frozen=True)
class Broken:
    """A bug, with its traceback: it would come again, and no text is to blame."""

    traceback: str
