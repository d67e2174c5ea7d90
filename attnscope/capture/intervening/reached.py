"""What of a model can be experimented with: the first route on which all wanted layers are seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor, nn

from attnscope.capture.evaluation_mode import evaluating, without_cache
from attnscope.capture.intervening.changes import AnswerRows, Attended, Logits, Place
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.passing import passing
from attnscope.capture.routes import Selection, nothing_seen, rungs, wanted_layers
from attnscope.model.anatomy.sites import Site


@dataclass(frozen=True, eq=False)
class Heard:
    """What a model answers as it is, and its heads, by place, in the same run."""

    untouched: Logits
    answers: Mapping[Place, Tensor]

    @classmethod
    def of(
        cls, model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], asked: AnswerRows
    ) -> "Heard":
        answers: dict[Place, Tensor] = {}

        def look(seen: Attended) -> None:
            answers[seen.place] = seen.output.detach().clone()

        with evaluating(model), passing(sites, look, changing=False) as passage:
            scores = asked.of(model(**without_cache(model, inputs))).clone()
        return cls(scores, {place: each for place, each in answers.items() if place not in passage.none})


_Made = TypeVar("_Made", Experiments, Heard)


def experiments_on(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, asked: AnswerRows
) -> Experiments:
    """Experiments with the selected attention; `InputError` where there is none, or none can be reached."""
    return _by_first_rung(Experiments, model, inputs, selection, asked)


def heard(model: nn.Module, inputs: Mapping[str, Any], selection: Selection, asked: AnswerRows) -> Heard:
    """What experiments put in from elsewhere, in one run; `InputError` as for these."""
    return _by_first_rung(Heard.of, model, inputs, selection, asked)


def _by_first_rung(
    make: Callable[..., _Made],
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    asked: AnswerRows,
) -> _Made:
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        made = make(model, inputs, rung.watched, asked)
        if not (missing := wanted - {layer for layer, _ in made.answers}):
            return made
    raise nothing_seen(model, rung.tower, sorted(missing))
