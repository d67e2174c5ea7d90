"""What a worker is told: which model, which heads, which measures, and how texts are read."""

from dataclasses import dataclass

from attnscope.session.corpus.engine.interface import Measurer
from attnscope.session.listener import Quiet
from attnscope.session.request import Inputs, ModelRequest, Wanted

LONGEST = 1024  # tokens of a text: the weights of a layer are quadratic in them
BATCH = 32


@dataclass(frozen=True)
class Linked:
    """The question which head links words of one part of speech to those of another."""

    source: str
    target: str


@dataclass(frozen=True)
class Measuring:
    """The recipe of a corpus; `rows` says whether what each text gives is kept."""

    request: ModelRequest
    wanted: Wanted
    measures: tuple[str, ...]
    longest: int = LONGEST
    batch: int = BATCH
    truncate: bool = False
    rows: bool = False
    linked: Linked | None = None

    def open(self) -> Measurer:
        """The model in memory, and torch with one thread."""
        import torch

        from attnscope.session.corpus.measuring.measurer import CorpusMeasurer
        from attnscope.session.opening import Purpose, open_model

        torch.set_num_threads(1)
        opened = open_model(self.request, Inputs("a"), self.wanted, Purpose.ATTENTION, Quiet())
        return CorpusMeasurer(self, opened)
