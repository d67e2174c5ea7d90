"""A result for every case and every optional part of what `sdpa --example why-scale` says."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attnscope.results import ScaleStudy
from attnscope.results.steps import Check
from attnscope.verbs.sdpa import scale_sheet as sheets
from attnscope.verbs.sdpa.result import Scaled

SAID, CASES = sheets.said, Scaled


def study() -> ScaleStudy:
    pairs = [
        np.array([[1.0, 2.0], [1.0, 1.1]]),
        np.array([[2.4, 0.5], [2.4, 2.3]]),
        np.array([[0.3, 0.1], [0.3, 0.31]]),
    ]
    return ScaleStudy((1, 4), 16, 256, 0, *pairs, checks=(Check.of("a gradient", 0.0, 1e-15),))


EXAMPLES: dict[str, Callable[[], ScaleStudy]] = {
    "kept": study,
    "beside additive": lambda: replace(study(), additive=np.array([[0.1, 0.4], [2.7, 2.6], [0.2, 0.3]])),
    "not kept": lambda: replace(study(), gradient=np.array([[0.3, 0.31], [0.3, 0.31]])),
}
