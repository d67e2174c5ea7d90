"""A model and what it has read, before anything is asked: read once for every part that is looked at."""

from dataclasses import replace

from attnscope.attention import Capture
from attnscope.session.choosing import Chosen, choose
from attnscope.session.entering import complete, encode_inputs
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.reading import Reading as WhatIsRead
from attnscope.session.request import Inputs, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind


class Entered:
    """A model with its inputs, which are read where they are first asked about, and then kept."""

    def __init__(self, opened: Opened, inputs: Inputs, listener: Listener) -> None:
        self._model, self._inputs, self._listener = opened.model, inputs, listener
        self._encoded = encode_inputs(opened, inputs, listener)
        self._complete: dict[str, WhatIsRead] = {}

    @property
    def tokens(self) -> Tokens:
        """The tokens that were read, those of the encoder where there are two sides."""
        return self._encoded.encoded.tokens

    @property
    def labels(self) -> list[str]:
        """What the tokens are called."""
        return list(self.tokens.labels)

    def _read(self, wanted: Wanted) -> tuple[WhatIsRead, Chosen]:
        """What is read where that attention is looked at, and which it is."""
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        of_encoder = "encoder" if chosen.kind is Kind.ENCODER else ""
        part = chosen.tower.pattern if self._inputs.goes_on else of_encoder
        if part not in self._complete:
            whole = chosen
            if self._inputs.goes_on:  # the model writes once for all heads of a tower
                tower = Wanted(kind=wanted.kind, tower=wanted.tower, route=wanted.route)
                whole = choose(self._model, tower, self._listener, sensed=False)
            self._complete[part] = complete(self._encoded, whole)
        done = self._complete[part]
        return (done if done.captured is None else _cut(done, chosen)), chosen

    def _whole(self) -> WhatIsRead:
        if "" not in self._complete:
            self._complete[""] = complete(self._encoded, None)
        return self._complete[""]

    def __repr__(self) -> str:
        read = self.tokens.sentence or f"{len(self.tokens)} positions"
        return f"<{self._model.name} read “{read if len(read) < 100 else read[:99] + '…'}”>"


def _cut(done: WhatIsRead, chosen: Chosen) -> WhatIsRead:
    """The reading whose attention was captured in all layers, down to the layers that are meant."""
    captured: Capture | None = done.captured
    assert captured is not None
    calls = tuple(call for call in captured.calls if call.layer in chosen.layers)
    return replace(done, captured=replace(captured, calls=calls))
