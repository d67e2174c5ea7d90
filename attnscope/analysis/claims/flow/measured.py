"""The numbers of a run that ways back by gradients start from.

F is what is measured when a token is replaced: the log probability of the answer, how far its logit lies
above that of another one, or the cosine of a vector with itself as it was. At that cosine's top there is no
slope, so two of the ways have nothing to tell of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from attnscope.analysis.claims.ablation.question import Question, of_rows
from attnscope.capture.intervening.changes import rows_only


class Measured(Protocol):
    """A number of a run."""

    @property
    def flat(self) -> str:
        """Why F has no slope here; empty where it has."""

    @property
    def little(self) -> float:
        """A difference of F that says nothing."""

    def of(self, model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
        """F of every entry of a batch, with gradients."""


@dataclass(frozen=True, eq=False)
class Chance:
    """The log probability of an answer, of all its tokens together, or how far its logit is above another."""

    question: Question
    answer: tuple[int, ...]
    flat: str = ""
    little: float = 0.01

    def logits(self, output: Any) -> Tensor:
        """Of the answer's tokens together, less those of another answer that it is set against."""
        made, against = self._choices(output), self.question.against
        own = of_rows(made, self.answer)
        return own - of_rows(made, against) if against else own

    def of(self, model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
        with rows_only(model, self.question.asked):
            output = model(**inputs)
        if self.question.against:
            return self.logits(output)
        return of_rows(self._choices(output).log_softmax(-1), self.answer)

    def _choices(self, output: Any) -> Tensor:
        """The logits of all that could be answered, in float32 at least."""
        made: Tensor = self.question.asked.of(output)
        return made.float() if torch.finfo(made.dtype).bits < 32 else made


@dataclass(frozen=True, eq=False)
class Direction:
    """The cosine of a token's vector with what it `was`.

    That stands on the processor where the model's device has no float64.
    """

    last: nn.Module
    query: int
    was: Tensor
    flat: str = "nothing is answered here, and the cosine of a vector with itself has no slope"
    little: float = 1e-4

    def of(self, model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
        made = vectors_with_slopes(model, inputs, self.last)[:, self.query].float()
        return torch.cosine_similarity(made, self.was.to(made.device), dim=-1)


def vectors_with_slopes(model: nn.Module, inputs: Mapping[str, Any], last: nn.Module) -> Tensor:
    """What `last` returns first, as `entry position hidden`."""
    found: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, made: Any) -> None:
        first = made if isinstance(made, Tensor) else made[0]
        found.append(first.reshape(-1, *first.shape[-2:]))

    with last.register_forward_hook(keep):
        model(**inputs)
    return found[-1]
