"""Scaled dot-product or additive attention on arrays, every step named: what `attnscope.sdpa` computes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.worked.proof import prove_additive, prove_dot
from attnscope.analysis.worked.shapes import named, squares
from attnscope.errors import InputError
from attnscope.results.worked import Axis, Cell, Given, Matrix, Scoring, Step, Worked
from attnscope.sdpa import Stages, additive_scores, attend, project, weigh
from attnscope.sdpa import Operands as Given_to_sdpa

ADDITIVE_KEYS = ("additive_wq", "additive_wk", "additive_v")


def work_out(
    given: Mapping[str, Given],
    *,
    scoring: Scoring = Scoring.SCALED_DOT,
    causal: bool = False,
    names: Mapping[str, tuple[str, ...]] | None = None,
    name: str = "",
    notes: tuple[str, ...] = (),
) -> Worked:
    """Every step from `given` (keys as in `roles.ROLES`) to the output, in float64, and what proves it.

    Under a `causal` mask query i may look at keys 0 to i, also where there are more keys than queries: as
    torch does it, aligned at the top left. Raises `InputError` for arrays that do not fit together.
    """
