"""Asks a model for the same answer again with parts of its prompt removed."""

import inspect
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnscope.analysis.answers.question import LogChances, log_chances
from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.running import evaluating, without_cache
from attnscope.errors import InputError

Removed = Collection[int]  # positions
_AT_ONCE = 2048  # tokens of a batch
_STRAY = 0.25  # roots of the machine epsilon, of the size of the answer's log probability: rounding


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer behind a prompt: token `ids[i]` is predicted by the logits of row `rows[i]`.

    Tokens are removed from the first `length` positions, which shifts the rows unless they are `apart` (of a
    decoder beside an encoder).

    """

    model: nn.Module
    inputs: Mapping[str, Any]
    length: int
    rows: tuple[int, ...]
    ids: tuple[int, ...]
    apart: bool

    @property
    def name(self) -> str:
        """The name of the model input from which tokens are removed."""
        return "input_ids"

    def chances(self) -> LogChances:
        """Log probabilities of every choice at each row of the answer, from an unhooked run of the model."""
        with evaluating(self.model):
            return self.chances_in(self.model(**without_cache(self.model, self.inputs)))

    def chances_in(self, said: Any) -> LogChances:
        """Log probabilities of every choice at each row of the answer, from the output of a run."""
        return log_chances(said.logits[0][list(self.rows)])

    def untouched(self) -> Float[np.ndarray, " token"]:
        """The log probability of each token of the answer with the whole prompt."""
        return self._of_answer(self.chances())

    def without(self, removed: Sequence[Removed]) -> Float[np.ndarray, "run token"]:
        """The log probability of each answer token with each set of positions removed, one run per set."""
        found = np.empty((len(removed), len(self.ids)))
        kept = [sorted({*range(self.length)} - {*each}) for each in removed]
        if not all(each and (self.apart or each[0] <= self.rows[0]) for each in kept):
            raise InputError("without these passages nothing stands before the answer")
        with evaluating(self.model):
            for part in _alike(kept, padded=self._takes_mask):
                some = [kept[i] for i in part]
                rows = self._rows(some)
                with _alone(self.model, rows, self._width(some)):
                    made = self.model(**without_cache(self.model, self._batch(some))).logits
                if made.shape[1] != len(self.ids):
                    made = made[torch.arange(len(part))[:, None], rows]
                for i, scores in zip(part, made, strict=True):
                    found[i] = self._of_answer(log_chances(scores))
        return found

    def strays(self, one: Float[np.ndarray, " token"], other: Float[np.ndarray, " token"]) -> bool:
        """Whether two runs of the same text differ by more than rounding does."""
        size = max(1.0, float(np.abs(one).max()))
        epsilon = epsilon_of(next(self.model.parameters()))
        return bool(np.abs(one - other).max() > _STRAY * epsilon**0.5 * size)

    def _of_answer(self, chances: LogChances) -> Float[np.ndarray, " token"]:
        return np.asarray(chances[torch.arange(len(self.ids)), list(self.ids)].numpy())

    @property
    def _takes_mask(self) -> bool:
        return "attention_mask" in inspect.signature(self.model.forward).parameters

    def _width(self, kept: Sequence[Sequence[int]]) -> int:
        return self.inputs["decoder_input_ids"].shape[1] if self.apart else max(map(len, kept))

    def _rows(self, kept: Sequence[Sequence[int]]) -> Int[Tensor, "entry row"]:
        if self.apart:
            return torch.tensor([self.rows] * len(kept))
        return torch.tensor([[bisect_right(each, row) - 1 for row in self.rows] for each in kept])

    def _batch(self, kept: Sequence[Sequence[int]]) -> dict[str, Any]:
        ids, width = self.inputs[self.name], max(map(len, kept))
        given = dict(self.inputs)
        if self._takes_mask:
            given.setdefault("attention_mask", torch.ones_like(ids))
        for name, value in given.items():
            if not isinstance(value, Tensor) or not value.ndim:
                continue
            if name.startswith("decoder_") or value.shape[1:2] != ids.shape[1:]:
                given[name] = value.repeat_interleave(len(kept), 0)
                continue
            cut = value.new_zeros((len(kept), width, *value.shape[2:]))
            for row, each in zip(cut, kept, strict=True):
                row[: len(each)] = value[0, each]
            given[name] = cut
        return given


def _alike(kept: Sequence[Sequence[int]], padded: bool) -> Iterator[list[int]]:
    """Batches of indices of texts of similar length; of equal length unless `padded` ones can be read."""
    part: list[int] = []
    for i in sorted(range(len(kept)), key=lambda i: -len(kept[i])):
        width = len(kept[part[0]]) if part else 0
        if part and ((len(part) + 1) * width > _AT_ONCE or not (padded or len(kept[i]) == width)):
            yield part
            part = []
        part.append(i)
    if part:
        yield part


@contextmanager
def _alone(model: nn.Module, rows: Int[Tensor, "entry row"], width: int) -> Iterator[None]:
    """While open, the model's output embeddings are applied to these rows of each batch entry only."""
    find: Any = getattr(model, "get_output_embeddings", lambda: None)
    head = find()
    if not isinstance(head, nn.Module) or rows.shape[1] >= width:
        yield
        return

    def cut(_head: nn.Module, args: Sequence[Any]) -> Any:
        hidden = args[0] if args else None
        if isinstance(hidden, Tensor) and hidden.ndim == 3 and hidden.shape[:2] == (len(rows), width):
            return (hidden[torch.arange(len(rows))[:, None], rows], *args[1:])
        return None

    with head.register_forward_pre_hook(cut):
        yield
