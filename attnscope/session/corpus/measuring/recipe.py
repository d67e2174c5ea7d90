"""The recipe of a corpus: what a worker is told, and how it gets from that to a model that measures."""

from dataclasses import replace

from attnscope.session.corpus.engine.interface import Measurer
from attnscope.session.corpus.measuring.told import Told
from attnscope.session.listener import Quiet
from attnscope.session.request import Inputs


class Measuring(Told):
    """What a worker is told, which it can open."""

    def on(self, device: str) -> "Measuring":
        """The same for a worker that has this device; a model that is spread has several."""
        if self.request.device_map is not None:
            return self
        return replace(self, request=replace(self.request, device=device))

    def open(self) -> Measurer:
        """The model in memory, and torch with one thread."""
        import torch

        from attnscope.session.corpus.measuring.measurer import CorpusMeasurer
        from attnscope.session.opening import Purpose, open_model

        torch.set_num_threads(1)
        opened = open_model(self.request, Inputs("a"), self.wanted, Purpose.ATTENTION, Quiet())
        return CorpusMeasurer(self, opened)
