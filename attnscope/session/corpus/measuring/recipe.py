"""The recipe of a corpus: what a worker is told, and how it gets from that to a model that measures."""

from attnscope.session.corpus.engine.interface import Measurer
from attnscope.session.corpus.measuring.told import Told
from attnscope.session.listener import Quiet
from attnscope.session.request import Inputs


class Measuring(Told):
    """What a worker is told, which it can open."""

    def open(self) -> Measurer:
        """The model in memory, and torch with one thread."""
        import torch

        from attnscope.session.corpus.measuring.measurer import CorpusMeasurer
        from attnscope.session.opening import Purpose, open_model

        torch.set_num_threads(1)
        opened = open_model(self.request, Inputs("a"), self.wanted, Purpose.ATTENTION, Quiet())
        return CorpusMeasurer(self, opened)
