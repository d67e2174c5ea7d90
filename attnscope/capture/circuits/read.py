"""The matrices of all heads of a tower and the paths between them, read back in one short run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnscope.attention import Capture
from attnscope.capture.circuits.factors import Factors, FactorSeeker
from attnscope.capture.circuits.paths import Paths, paths_between
from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.run import record
from attnscope.capture.selection import Labels, Selection
from attnscope.model.anatomy.sites import Site


@dataclass(frozen=True, eq=False)
class Circuits:
    """The run, the matrices of every layer, and what lies between layers."""

    captured: Capture
    layers: tuple[Factors, ...]
    paths: Paths


def read_circuits(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> Circuits:
    """What makes and reads the attention of `selection`, as far as the run over `inputs` proves it."""
    sought: list[FactorSeeker] = []

    def seek(model: nn.Module, watched: Sequence[Site], wanted: set[int]) -> FactorSeeker:
        sought.append(FactorSeeker(model, [site for site in watched if wanted.intersection(site.layers)]))
        return sought[-1]

    captured = record(model, inputs, selection, labels, seek)
    found = sought[-1].of_layer  # of the way of reading that saw every layer
    layers = tuple(found[layer] for layer in sorted(found))
    with evaluating(model):
        return Circuits(captured, layers, paths_between(model, inputs, layers))
