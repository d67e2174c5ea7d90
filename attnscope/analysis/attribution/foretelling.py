"""What a measure of the answer foretells of taking a head away: that what it adds is gone."""

from collections.abc import Sequence

import numpy as np

from attnscope.analysis.ablation.estimating import estimated
from attnscope.analysis.attribution.answers import Ids
from attnscope.analysis.attribution.heads import attributed
from attnscope.capture.intervening.changes import Zero
from attnscope.capture.intervening.experiments import Experiments
from attnscope.errors import InputError
from attnscope.results.claims.ablation import Estimate


def measured_estimates(
    experiments: Experiments, ids: Ids, by: str, heads: Sequence[tuple[int, int]]
) -> tuple[Estimate, ...]:
    """The difference without each of `heads` as the measure `by` foretells it, the largest size first.

    Importance with its sign, -output . gradient; the others with theirs turned round. `InputError` where the
    measure has no meaning.
    """
    if by == "importance":
        return estimated(experiments, ids, Zero())
    layers, numbers = (sorted({head[i] for head in heads}) for i in (0, 1))
    scores = attributed(experiments, (ids,), (by,), layers, numbers)[by]
    if scores.absent:
        raise InputError(f"--by {by} has no meaning here: {scores.absent}")
    found = [
        Estimate(layers[i], numbers[j], -float(value))
        for (i, j), value in np.ndenumerate(scores.values)
        if not np.isnan(value)
    ]
    return tuple(sorted(found, key=lambda one: (-abs(one.difference), one.layer, one.head)))
