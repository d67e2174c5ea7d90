"""One place of the pool: a process of its own that measures, as the local engine has, and a table for Ray.

The process is the same program with the same surroundings as a local worker, so the bits are; a text that
ends it is found and set aside in the same way. An error comes back as a value: an exception would be tried
again, and printed by Ray.
"""

import pickle
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.session.corpus.engine.interface import Chunk, Finished, Recipe
from attnscope.session.corpus.engine.local import Worker, WorkerBugError


def packed(chunk: Chunk) -> Any:
    """A table of one row that holds the chunk: what a block of the dataset is."""
    return _table([pickle.dumps(chunk)])


def unpacked(table: Any) -> list[Finished]:
    """What the actors made of the rows; an error that one of them met is raised."""
    found = []
    for row in table.column("held").to_pylist():
        answer = pickle.loads(row)
        if isinstance(answer, Exception):
            raise answer
        found.append(answer)
    return found


def _table(held: list[bytes]) -> Any:
    """By Arrow itself: NumPy's strings would lose the zeros at the end of a chunk's file."""
    import pyarrow

    return pyarrow.table({"held": pyarrow.array(held, pyarrow.large_binary())})


class Actor:
    """Measures chunk after chunk; what it is given, it must be able to take to another machine."""

    def __init__(self, recipe: Recipe) -> None:
        self.worker = Worker(recipe)

    def __call__(self, table: Any) -> Any:
        """A table of chunks to one of what they gave."""
        return _table([pickle.dumps(self._answer(pickle.loads(row))) for row in table["held"].to_pylist()])

    def _answer(self, chunk: Chunk) -> Finished | Exception:
        try:
            return Finished(chunk.number, len(chunk.texts), self.worker.measure(chunk))
        except (AttnscopeError, WorkerBugError) as error:
            return error

    def __del__(self) -> None:
        self.worker.stop()
