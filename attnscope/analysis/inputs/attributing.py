"""Attributes an answer to input tokens by three gradient methods, each with its own test.

    gradient x input        x . dF/dx: what the answer loses with the embedding x, if it went on as steeply
    integrated gradients    the mean gradient on the way from all tokens replaced, times that way
                            (Sundararajan et al. 2017): sums to what replacing them all costs
    attention x gradient    R = R + mean over heads of (A * dF/dA)+ R, layer by layer (Chefer et al. 2021)

F is that of `flow.measured`; attention x gradient goes back from the logits of the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.analysis.answers.attribution import MIXED, makes_output, weights_and_slopes
from attnscope.analysis.answers.question import Question, of_rows
from attnscope.analysis.controls import batches
from attnscope.analysis.inputs.entrance import ByPosition, Entrance
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import rows_only
from attnscope.capture.intervening.experiments import experiments_on
from attnscope.capture.intervening.passing import slopes
from attnscope.capture.running import Refused, evaluating, running_again, without_cache, without_weights
from attnscope.errors import InputError, one_line
from attnscope.reference import exact
from attnscope.results.claims.attributed import GRADIENT, INTEGRATED, WEIGHED, Attributed, ByGradients


class Measured(Protocol):
    """A number F of a run that can be differentiated by its input."""

    @property
    def flat(self) -> str:
        """Why F has no slope here; empty where it has one."""

    @property
    def little(self) -> float:
        """A difference of F that is too small to matter."""

    def of(self, model: nn.Module, inputs: Mapping[str, Any]) -> Tensor:
        """F of every entry of a batch, with its autograd graph."""


@dataclass(frozen=True, eq=False)
class Chance:
    """The log probability of an answer, or its logit less that of another answer."""

    question: Question
    answer: tuple[int, ...]
    flat: str = ""
    little: float = 0.01

    def logits(self, output: Any) -> Tensor:
        """The summed logits of the answer's tokens, less those of the answer it is compared with."""
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
        """Logits of all choices, in float32 or wider."""
        made: Tensor = self.question.asked.of(output)
        return made.float() if torch.finfo(made.dtype).bits < 32 else made


@dataclass(frozen=True, eq=False)
class Direction:
    """The cosine of a token's vector with its unchanged value `was`.

    `was` is on the CPU where the model's device has no float64.

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
    """The first output of `last` with its autograd graph, as `entry position hidden`."""
    found: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, made: Any) -> None:
        first = made if isinstance(made, Tensor) else made[0]
        found.append(first.reshape(-1, *first.shape[-2:]))

    with last.register_forward_hook(keep):
        model(**inputs)
    return found[-1]


POINTS, PIECES = 8, 128  # of a piece of the way, and the most pieces of it, until sum and tokens hold
SHARE = 0.01  # of what replacing all costs: how far the sum and a token may be off, or `Measured.little`
_AT_ONCE = 512  # tokens of a batch whose gradients are kept


def attributed(
    model: nn.Module,
    entrance: Entrance,
    measured: Measured,
    selection: Selection | str,
    layers: Sequence[int],
    heads: Sequence[int],
) -> tuple[Attributed, ...]:
    """Attributions by all three methods; one without meaning here is absent with its reason.

    `selection` is where weights are read, or why they are not.
    """
    ways: dict[ByGradients, Callable[[], Attributed]] = {
        GRADIENT: lambda: _gradient(model, entrance, measured),
        INTEGRATED: lambda: _integrated(model, entrance, measured),
        WEIGHED: lambda: _weighed(model, entrance, measured, selection, layers, heads),
    }
    found = []
    for name, way in ways.items():
        try:
            found.append(way())
        except (InputError, Refused) as error:
            found.append(Attributed(name, None, one_line(error)))
    return tuple(found)


def _slopes(model: nn.Module, entrance: Entrance, measured: Measured, values: Sequence[Tensor]) -> Tensor:
    with (
        evaluating(model),
        without_weights(model),
        torch.enable_grad(),
        entrance.put(values) as (inputs, leaf),
    ):
        with running_again(model):
            made = measured.of(model, without_cache(model, inputs))
        if not made.requires_grad:
            raise InputError(f"{type(model).__name__} lets no gradients pass to its input")
        with running_again(model):
            (slope,) = torch.autograd.grad(made.sum(), leaf)
    if not slope.isfinite().all():
        raise InputError("gradients are not numbers")
    return slope


def _values(
    model: nn.Module, entrance: Entrance, measured: Measured, values: Sequence[Tensor]
) -> list[float]:
    with evaluating(model), entrance.put(values) as (inputs, _), running_again(model):
        made: list[float] = measured.of(model, without_cache(model, inputs)).tolist()
    return made


def _gradient(model: nn.Module, entrance: Entrance, measured: Measured) -> Attributed:
    if measured.flat:
        return Attributed(GRADIENT, None, measured.flat)
    slope = _slopes(model, entrance, measured, [entrance.there])
    return Attributed(GRADIENT, entrance.by_position(slope * entrance.there))


def _integrated(model: nn.Module, entrance: Entrance, measured: Measured) -> Attributed:
    """Integrated gradients, bisecting the worst piece of the path until sum and token values are stable.

    A token's value is stable when halving the pieces hardly changes it. So points are dense where F is steep,
    as a norm makes it near a text of zeros.

    """
    there, blank = exact(entrance.there.cpu()), exact(entrance.blank.cpu())
    way, places = there - blank, list(entrance.places)
    points, weights = np.polynomial.legendre.leggauss(POINTS)

    def entering(shares: Sequence[float]) -> list[Tensor]:
        return [(blank + way * share).to(entrance.there) for share in shares]

    def piece(start: float, stop: float, low: float, high: float) -> _Piece:
        total, shares = torch.zeros_like(way), (start + (stop - start) * (points + 1) / 2).tolist()
        for part in batches(POINTS, entrance.tokens, _AT_ONCE):
            slope = exact(_slopes(model, entrance, measured, entering(shares[part])).cpu())
            share = torch.from_numpy(weights[part]).to(slope) * (stop - start) / 2
            total += torch.tensordot(share, slope, 1)[None]
        values = entrance.by_position(total * way)[places]
        return _Piece(start, stop, low, high, values, float(values.sum()) - (high - low))

    def halves(whole: _Piece) -> list[_Piece]:
        middle = (whole.start + whole.stop) / 2
        (between,) = _values(model, entrance, measured, entering([middle]))
        first = piece(whole.start, middle, whole.low, between)
        second = piece(middle, whole.stop, between, whole.high)
        moved = np.abs(whole.values - first.values - second.values) / 2
        return [replace(first, moved=moved), replace(second, moved=moved)]

    ends = entrance.blank, entrance.there
    none, every = (_values(model, entrance, measured, [each])[0] for each in ends)
    whole = every - none
    allowed = max(measured.little, SHARE * abs(whole))
    pieces = halves(piece(0.0, 1.0, none, every))
    while not (
        (off := sum(abs(each.off) for each in pieces)) <= allowed
        and (moved := float(np.sum([each.moved for each in pieces], axis=0).max())) <= allowed
    ):
        if len(pieces) >= PIECES:
            what, far = ("their sum", off) if not off <= allowed else ("a token", moved)
            raise InputError(
                f"with {len(pieces) * POINTS} steps {what} may still be {far:.2g} off, "
                f"where {allowed:.2g} is allowed"
            )
        worst = max(pieces, key=lambda each: max(abs(each.off), each.moved.max()))
        pieces = [each for each in pieces if each is not worst] + halves(worst)
    values = np.full(entrance.tokens, np.nan)
    values[places] = sum(each.values for each in pieces)
    return Attributed(
        INTEGRATED,
        values,
        whole=whole,
        off=float(values[places].sum()) - whole,
        each_off=moved,
        steps=len(pieces) * POINTS,
    )


@dataclass(frozen=True, eq=False)
class _Piece:
    """A piece of the integration path, with F at its ends.

    `values` are what gradients give to each place, `off` how far their sum is from the rise of F, `moved` how
    much of its place's value halving changed, half of it for each of the two.
    """

    start: float
    stop: float
    low: float
    high: float
    values: ByPosition
    off: float
    moved: ByPosition = field(default_factory=lambda: np.zeros(0))


def _weighed(
    model: nn.Module,
    entrance: Entrance,
    measured: Measured,
    selection: Selection | str,
    layers: Sequence[int],
    heads: Sequence[int],
) -> Attributed:
    if measured.flat or isinstance(selection, str) or not isinstance(measured, Chance):
        return Attributed(WEIGHED, None, measured.flat or str(selection))

    sites = experiments_on(model, entrance.inputs, selection, measured.question.asked).sites
    found = slopes(model, entrance.inputs, sites, measured.logits, weights=True)
    count, reached = entrance.tokens, None
    for layer in reversed(layers):
        places = [place for place in found.seen if place[0] == layer]
        seen = found.seen[places[0]] if len(places) == 1 else None
        if seen is None or seen.output.shape[0] != 1 or seen.output.shape[2] != count:
            raise InputError("its layers read other positions than the tokens")
        if not makes_output(seen):
            raise InputError(f"L{layer}: {MIXED}")
        slope = found.by_score[0][places[0]]
        weighed = torch.stack([w * g for w, g in (weights_and_slopes(seen, slope, head) for head in heads)])
        if weighed.shape[1:] != (count, count):
            raise InputError("its layers read other positions than the tokens")
        matrix = np.eye(count) + weighed.nan_to_num(0.0).clamp_min(0.0).mean(0).numpy()
        if reached is None:
            reached = np.eye(count)[list(measured.question.asked.rows)].mean(axis=0)
        reached = reached @ matrix
    assert reached is not None, "there is a layer"
    return Attributed(WEIGHED, reached / reached.sum())
