"""What is remembered of the tensors that pass by.

Where a tensor comes from is kept as long as the tensor lives. What is known of scores and weights holds
other tensors, large ones; it is kept until the watched module in which they were made is done.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attnscope.capture.trace.mixed import Answer, Blend
from attnscope.capture.trace.origin import Origin, first_origin
from attnscope.capture.trace.result import Weights
from attnscope.capture.trace.scores import Scores, version

Known = Scores | Weights | Answer | Blend | None


@dataclass(frozen=True, eq=False)
class Record:
    """What is known of a tensor as long as it has this `version`."""

    version: int
    origin: Origin
    known: Known = None


class Memory:
    """Records by tensor; a scope is open for every watched module that is running."""

    def __init__(self) -> None:
        self._origins = WeakIdKeyDictionary()
        self._scopes: list[dict[int, tuple[Tensor, Record]]] = []

    def open(self) -> None:
        """A watched module begins."""
        self._scopes.append({})

    def close(self) -> None:
        """The innermost one is done: what was known of its scores and weights goes."""
        self._scopes.pop()

    def of(self, tensor: Tensor) -> Record:
        """What is known of `tensor`; as of a fresh one if it has been written over since."""
        now = version(tensor)
        for scope in reversed(self._scopes):
            if id(tensor) in scope and scope[id(tensor)][1].version == now:
                return scope[id(tensor)][1]
        record: Record | None = self._origins.get(tensor)  # type: ignore[no-untyped-call]
        return record if record and record.version == now else Record(now, first_origin(tensor))

    def keep(self, tensor: Tensor, origin: Origin, known: Known = None) -> None:
        """Remember `tensor` as it is now."""
        now = version(tensor)
        self._origins[tensor] = Record(now, origin)
        if self._scopes:
            self._scopes[-1].pop(id(tensor), None)
            if known is not None:
                self._scopes[-1][id(tensor)] = tensor, Record(now, origin, known)
