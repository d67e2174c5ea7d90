"""The recipe of a corpus, apart from what measures: whoever only plans a run imports no torch."""

from dataclasses import dataclass, replace

from attnscope.process.startup import lean_loading
from attnscope.session.corpus.engine.interface import Measurer
from attnscope.session.corpus.identity import Instructions


@dataclass(frozen=True)
class CorpusRecipe(Instructions):
    """What a worker is told, which it opens to a model that measures."""

    def on(self, device: str) -> "CorpusRecipe":
        """The recipe for a worker that has this device; a model that is spread has several."""
        if self.request.device_map is not None:
            return self
        return replace(self, request=replace(self.request, device=device))

    def open(self) -> Measurer:
        """The model in memory."""
        with lean_loading():
            from attnscope.session.corpus.measurer import CorpusMeasurer
        return CorpusMeasurer.of(self)
