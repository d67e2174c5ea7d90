"""A model and what it has read: from here on attention can be captured, and everything else asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from attnscope.attention import Capture
from attnscope.capture import Labels, Selection, record
from attnscope.capture.encoded_once import EncodedOnce
from attnscope.capture.faults import if_it_runs
from attnscope.capture.returned import Returned, read
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.inputs.target import Target
from attnscope.model.inputs.text import Encoded
from attnscope.model.loaded import Model
from attnscope.results import Sound
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.prompts import texts_of_fields
from attnscope.session.request import Inputs
from attnscope.tokens import Frames, Tokens
from attnscope.vocabulary import Kind, Route

if TYPE_CHECKING:
    from attnscope.model.loading.answering import Task
    from attnscope.model.media.perceive import Perceived


@dataclass(frozen=True, eq=False)
class Reading:
    """A model that has read something: `encoded`, and in a decoder beside an encoder `target`.

    `task` is what the model can answer, where it was loaded with the head for that. Of a text that it went
    on with, the attention of the heads that were chosen then is `captured` already. What is `told` stands
    among the notes of what is asked. Where an answer is read behind a text, the text alone is what was
    `said`. `once` knows what the encoder answered while the model wrote the target.
    """

    model: Model
    asked: Inputs
    encoded: Encoded
    target: Target | None
    listener: Listener
    task: "Task | None" = None
    captured: Capture | None = None
    told: tuple[str, ...] = ()
    said: Tokens | None = None
    once: EncodedOnce | None = None

    @property
    def inputs(self) -> dict[str, Any]:
        """What the model is called with."""
        decoder = {} if self.target is None else {"decoder_input_ids": self.target.ids}
        return {**self.encoded.inputs, **decoder}

    @property
    def perceived(self) -> "Perceived | None":
        """What was read, where that is a picture or a sound."""
        return cast("Perceived", self.encoded) if self.asked.sensed else None

    def lies_over_medium(self, chosen: Chosen) -> bool:
        """Whether keys of the chosen attention are patches or frames, alone or among a text's tokens.

        Those of a decoder's self-attention, and of a text tower beside one that sees, are words alone.
        """
        if self.perceived is None:
            return False
        return self._senses(chosen) or bool(self.tokens_of(chosen.kind).stretches)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read that is no text, what of it is padding, and what else is `told` of what is read."""
        medium = None if self.perceived is None else self.perceived.medium
        return self.told if medium is None else (f"over {medium.described}", *self._padding(), *self.told)

    def _padding(self) -> Iterator[str]:
        assert self.perceived is not None, "something was heard"
        medium, stretches = self.perceived.medium, self.perceived.positions.stretches
        frames = next((each for each in stretches if isinstance(each, Frames)), None)
        if frames is None or not isinstance(medium, Sound):
            return
        if (padding := frames.count - frames.heard(medium.seconds)) > 1:  # one is what rounding makes
            masked = any("mask" in name for name in self.perceived.inputs)
            told = "" if masked else ", looked at like any other"
            yield f"{padding:,} of {frames.count:,} frames are silence after its end{told}"

    def tokens_of(self, kind: Kind) -> Tokens:
        """The tokens on the query side of one kind of attention."""
        return self.encoded.tokens if kind is Kind.ENCODER or self.target is None else self.target.tokens

    def named_of(self, kind: Kind) -> Tokens:
        """The tokens on the query side as they are named: without an answer that is read behind."""
        return self.said or self.tokens_of(kind)

    def filled(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the options that are texts and name a field, with its words (`session.prompts`)."""
        return texts_of_fields(options, self.asked.prompt)

    def capture(
        self,
        chosen: Chosen,
        layers: tuple[int, ...] | None = None,
        *,
        projections: bool = False,
        circuits: bool = False,
    ) -> Capture:
        """The attention of the chosen heads, in the chosen layers or in others that are named.

        With `projections` also what takes the heads' outputs to the hidden state, where that is found; with
        `circuits` what makes their values too.
        """
        if chosen.route is Route.RETURNED:
            raise InputError("--route returned has weights alone: here queries and keys are needed")
        if self.captured is not None:
            return self.captured
        selection = replace(self._selection(chosen, layers, projections), circuits=circuits)
        with if_it_runs(self.model.module, self.inputs, self.model.name):
            captured = record(self.model.module, self.inputs, selection, self.labels(chosen))
        return self._with_windows_named(captured, chosen)

    def attention(self, chosen: Chosen, *, projections: bool = False) -> Capture | Returned:
        """Attention where it can be recomputed, else the weights that the model returns, with a notice."""
        if self.captured is not None:
            return self.capture(chosen)
        if chosen.block and chosen.route is Route.RETURNED:
            raise InputError(f"no block {chosen.block}: what a model returns is in one piece")
        selection, labels = self._selection(chosen, None, projections), self.labels(chosen)
        with if_it_runs(self.model.module, self.inputs, self.model.name):
            attention = read(
                self.model.module, self.inputs, selection, labels, self.listener.notice, self.once
            )
        if isinstance(attention, Capture):
            return self._with_windows_named(attention, chosen)
        if chosen.block:
            raise InputError(f"no block {chosen.block}: what a model returns is in one piece")
        return attention

    def _selection(self, chosen: Chosen, layers: tuple[int, ...] | None, projections: bool) -> Selection:
        return Selection(
            layers=chosen.layers if layers is None else layers,
            heads=chosen.heads,
            kind=chosen.kind,
            tower=chosen.tower.pattern,
            route=chosen.route,
            projections=projections,
        )

    def labels(self, chosen: Chosen) -> Labels:
        """What positions stand for: tokens, or as far as they are known the patches or frames."""
        target = None if self.target is None else self.target.tokens
        perceived, source = self.perceived, self.model.origin()
        if perceived is None:
            return Labels(self.encoded.tokens, target, source)
        if chosen.kind is Kind.CROSS and target is None:
            target = perceived.tokens  # a text that looks at a picture
        tokens = perceived.positions if self._senses(chosen) else perceived.tokens
        return Labels(tokens, target, source, read=perceived.read or Tokens((), ()))

    def _senses(self, chosen: Chosen) -> bool:
        from attnscope.model.media.perceive import sees

        return chosen.kind is Kind.CROSS or sees(self.model.module, chosen.tower.sites)

    def _with_windows_named(self, captured: Capture, chosen: Chosen) -> Capture:
        layers = {call.layer for call in captured.calls}
        perceived = self.perceived
        if perceived is None or len(layers) != 1 or chosen.kind is Kind.CROSS or not self._senses(chosen):
            return captured
        (layer,), size = layers, len(captured.calls[0].key_tokens)
        if size == len(perceived.positions):
            return captured
        path = next(site.path for site in chosen.tower.sites if layer in site.layers)
        own = next(site for site in find_sites(self.model.module) if site.path == path)
        from attnscope.model.media.perceive import window_names

        names = window_names(self.model, perceived, own, size)
        if names is None:
            return captured
        calls = (replace(c, query_tokens=names[c.block], key_tokens=names[c.block]) for c in captured.calls)
        return replace(captured, calls=tuple(calls))
