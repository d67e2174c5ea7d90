"""What an untouched run showed, which later runs are held against and put back to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from attnscope.capture.following.answers import Forward, Place
from attnscope.capture.reaching.rows import size_of


@dataclass(eq=False)
class Clean:
    """What an untouched run showed of the attentions, their modules and blocks; copies."""

    answers: dict[Place, Tensor] = field(default_factory=dict)  # batch head query dim
    queries: dict[Place, Tensor] = field(default_factory=dict)
    results: dict[Forward, list[Tensor]] = field(default_factory=dict)
    blocks: dict[Forward, list[Tensor]] = field(default_factory=dict)
    given: dict[Forward, Tensor] = field(default_factory=dict)  # the hidden state that a block reads
    fed: dict[tuple[Forward, nn.Module], Tensor] = field(default_factory=dict)
    numbers: dict[Place, int] = field(default_factory=dict)  # how many attentions the module made before
    within: dict[Forward, Forward] = field(default_factory=dict)  # of a module, the forward of its block
    sizes: dict[Place, float] = field(default_factory=dict)
    epsilon: float = 0.0  # of whole numbers that the model computes with, where it does

    def size(self, place: Place) -> float:
        """The size of an answer's numbers, found once."""
        if place not in self.sizes:
            self.sizes[place] = size_of(self.answers[place])
        return self.sizes[place]

    def of(self, forward: Forward) -> list[Place]:
        """The attentions of one forward of a module, in their order."""
        return [place for place in self.answers if place[:2] == forward]


def restored(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
    """What was returned before in the place of what is returned now, where that was kept and fits."""
    if len(before) != len(now):
        return list(now)
    return [a.clone() if a.shape == b.shape and a.numel() else b for a, b in zip(before, now, strict=True)]
