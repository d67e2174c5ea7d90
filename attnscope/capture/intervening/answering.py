"""The rows of a model's answer: only where the answer stands, before the whole vocabulary is multiplied out.

A vocabulary takes a fifth of a small model's time; of a text, one row of it is asked for. The module that
holds the output embeddings is then given that row alone. Whether the model's answer is the same without the
other rows is for the caller to hold against a run that is whole.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

Logits = Float[Tensor, "entry row choice"]
Read = Callable[[Any], Float[Tensor, "entry position choice"]]  # what a model returns -> its scores


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Where the answer stands: what reads the scores off a model's result, and at which positions."""

    read: Read
    rows: tuple[int, ...]
    length: int  # positions that the scores have where all are made

    def of(self, output: Any) -> Logits:
        """The scores at the answer's rows, whether the model made all rows or only these."""
        scores = self.read(output)
        return scores if scores.shape[1] == len(self.rows) != self.length else scores[:, list(self.rows)]


@contextmanager
def rows_only(model: nn.Module, asked: AnswerRows) -> Iterator[None]:
    """While open, the model's output embeddings are multiplied with the answer's rows alone."""
    find: Callable[[], Any] = getattr(model, "get_output_embeddings", lambda: None)
    head = find()
    if head is None or not isinstance(head, nn.Module) or len(asked.rows) >= asked.length:
        yield
        return

    def cut(_head: nn.Module, args: Sequence[Any]) -> Any:
        hidden = args[0] if args else None
        if isinstance(hidden, Tensor) and hidden.ndim == 3 and hidden.shape[1] == asked.length:
            return (hidden[:, list(asked.rows)], *args[1:])
        return None

    handle = head.register_forward_pre_hook(cut)
    try:
        yield
    finally:
        handle.remove()
