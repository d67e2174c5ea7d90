"""What in a model composition is computed from, by the paths of its modules."""

from collections.abc import Sequence

import torch
from torch import nn

from attnscope.capture.circuits.gains import Gain
from attnscope.capture.circuits.paths import SIDES, Circuits
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import exact
from attnscope.results.claims.composition import HeadMatrix, Norm, Through, Way


class Parts:
    """The modules of one model by their paths; `norms` are those that were asked for, in their order."""

    def __init__(self, model: nn.Module) -> None:
        self.path = {part: path for path, part in model.named_modules()}
        self.norms: dict[str, Norm] = {}

    def matrices(self, circuits: Circuits) -> tuple[HeadMatrix, ...]:
        """Every matrix that was proved."""
        found = []
        for layer in circuits.layers:
            for side in (*SIDES, "output"):
                if (factor := getattr(layer, side)) is not None:
                    size = factor.matrix.shape[1 if side == "output" else 2]
                    reader = circuits.paths.reader.get((layer.layer, side))
                    place = None if reader is None else self._place(reader)
                    path = self.path[factor.part]
                    found.append(HeadMatrix(layer.layer, side, path, factor.firsts, size, place))
        return tuple(found)

    def ways(self, circuits: Circuits, through: Sequence[Through]) -> tuple[Way, ...]:
        """The ways that pass a norm, through these inputs."""
        return tuple(
            Way(early, late, Through(side), tuple(map(self._place, gains)))
            for (early, late, side), gains in circuits.paths.way.items()
            if gains and side in through
        )

    def _place(self, gain: Gain) -> int:
        path = self.path[gain.part]
        if path not in self.norms:
            self.norms[path] = _norm(gain, path)
        return list(self.norms).index(path)


def _norm(gain: Gain, path: str) -> Norm:
    for name, _ in gain.part.named_parameters(recurse=False):
        own = weight_of(gain.part, name)
        if own is not None and own.shape == gain.weight.shape:
            values = exact(own.detach().cpu())
            for one in (False, True):
                if torch.equal(values + one, gain.weight):
                    return Norm(path, name, one, gain.centred)
    return Norm(path, "", False, gain.centred)
