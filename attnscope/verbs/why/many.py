"""What one prompt says of parts, beside other prompts."""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.analysis.prompts import OnePrompt, Seen, Spans
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.verbs.why.contributions_result import Contributions
from attnscope.verbs.why.result import Part, Why


def figures(result: Why, spans: Spans) -> OnePrompt:
    """Each part of the score, on the side that it is on."""
    return OnePrompt(Asked.WHY, dict(_sides(result)))


def figures_of_answer(result: Contributions, spans: Spans) -> OnePrompt:
    """Each part of the logit, beside what is lost without it."""
    return OnePrompt(Asked.ANSWER, dict(_parts(result)), result, _summed)


def _parts(result: Contributions) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(part.name, "logits", part.layer, part.head)
        if part.removed is None or not part.controls:
            yield figure, Seen(part.direct)
        else:
            most = max(map(abs, part.controls))
            yield figure, Seen(part.direct, most, -part.removed.total, part.stands)


def _sides(result: Why) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(f"{part.name} on the {part.side} side", "share", part.layer, part.head)
        yield figure, _of_part(result, part)


def _of_part(result: Why, part: Part) -> Seen:
    if part.removed is None or not part.controls:
        return Seen(part.contrast)
    most = max(map(abs, part.controls))
    return Seen(part.contrast, most, -part.removed.total, result.is_reason(part))


def _summed(every: Sequence[Contributions]) -> str:
    what = "logit" if every[0].against is None else "difference of logits"
    mean, told = (float(np.mean([getattr(each, name) for each in every])) for name in ("summed", "logit"))
    off = max(each.residual for each in every)
    return (
        f"in the mean all parts sum to {mean:+.5g}, and the {what} of the untouched model is {told:+.5g}; in "
        f"no prompt are they more than {off:.1g} of it apart"
    )
