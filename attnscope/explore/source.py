"""Answers the explorer's questions with a model that is opened once, through the session.

Every method may be slow and is called on a background thread. User errors are `AttnscopeError`s.
"""

from collections import OrderedDict
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from attnscope.errors import InputError
from attnscope.explore import questions as ask
from attnscope.explore.state import Scene, Tower
from attnscope.printable import printable
from attnscope.session.listener import Listener
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Looking, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.opening import Opened
    from attnscope.session.questions.held import HeldReading
    from attnscope.session.reading import Reading

_GUESSES = 10
_TEXTS = 3  # whose attention is kept: the first, the second, and the one before


class Source:
    """An open model with its last texts: `scene` reads a text, `answer` answers a question about it."""

    def __init__(self, request: ModelRequest, inputs: Inputs, wanted: Wanted, listener: Listener) -> None:
        self.request, self.inputs, self.wanted, self.listener = request, inputs, wanted, listener
        self._running = RLock()
        self._opened: Opened | None = None
        self._meant: Chosen | None = None
        self._kept: OrderedDict[tuple[str, str], HeldReading] = OrderedDict()

    def scene(self, text: str | None = None, tower: str | None = None, layer: int | None = None) -> Scene:
        """Read a text (default: the first one) and return its tokens, towers and provenance as a `Scene`.

        `layer` is read first, where the tower has it.
        """
        from attnscope.render.kit.words import head_of
        from attnscope.session.choosing import towers_of

        with self._running:
            kept = self._read(self.inputs if text is None else self._inputs(text), tower, layer)
        reading, chosen = kept.reading, kept.chosen
        towers = tuple(_tower(tower) for tower in towers_of(reading.model))
        first = kept.head(kept.looked_at, chosen.heads[0])  # the sides that it really has
        perceived = reading.perceived if reading.lies_over_medium(chosen) else None
        assert self._meant is not None, "chosen for the first text"
        return Scene(
            model=reading.model.name,
            text=self._called(reading.asked),
            towers=towers,
            tower=next(tower for tower in towers if (tower.pattern == _name(chosen.tower))),
            queries=first.query_tokens,
            keys=first.key_tokens,
            provenance=head_of(first).provenance,
            medium="" if perceived is None or perceived.medium is None else perceived.medium.described,
            first=_first(first.query_tokens, reading.encoded.mask_id, goes_on=reading.task == "next"),
            place=(self._meant.layers[0], self._meant.heads[0]),
            mask=_mask(reading),
        )

    def answer(self, question: ask.Question) -> Any:
        """The result that answers a question; raises `AttnscopeError` where there is none."""
        kept = self._of(question)
        match question:
            case ask.OfParts():
                return kept.terms(question.layer, question.head)
            case ask.OfMap():
                return self._map(kept, question)
            case ask.OfHead():
                return kept.head(question.layer, question.head, _looking(question))
            case ask.OfMedium():
                return kept.over(question.layer, question.head, question.query)
            case ask.OfLayer():
                measured = kept.measured(question.layer, question.measures, question.heads)
                return replace(measured, weights=None)  # of all layers they would fill the memory
            case ask.OfOther():
                return self._beside(kept, question)
        with self._running:
            return self._asked_of_all(kept, question)

    def _asked_of_all(self, kept: "HeldReading", question: ask.Question) -> Any:
        from attnscope.verbs.ablate.answer import ablate, answer_without
        from attnscope.verbs.ablate.question import Ablate
        from attnscope.verbs.find.answer import find
        from attnscope.verbs.find.question import Find
        from attnscope.verbs.predict.answer import predict
        from attnscope.verbs.predict.question import Predict

        match question:
            case ask.OfPair():
                return find(kept.reading, kept.chosen, Find(f"@{question.query}", f"@{question.key}"))
            case ask.OfWithout():
                return answer_without(self._whole(kept, question), kept.chosen, question.heads)
            case ask.OfAbsence():
                chosen = replace(kept.chosen, apart=tuple(question.heads))
                return ablate(self._whole(kept, question), chosen, Ablate())
        return predict(self._whole(kept, question), Predict(_GUESSES))

    def _called(self, inputs: Inputs) -> str:
        alone = not inputs.sensed and inputs.ids is None and inputs.chat is None
        return inputs.texts(self._model)[0] if alone else inputs.text or ""

    @property
    def _model(self) -> Any:
        assert self._opened is not None, "opened by the first text"
        return self._opened.model

    def _inputs(self, text: str) -> Inputs:
        if self.inputs.ids is not None:
            raise InputError("--ids is all that is read here: start with a text to change it")
        if self.inputs.chat is not None:
            raise InputError("--chat is all that is read here: start with a text to change it (--system)")
        if not text.strip():
            raise InputError("a text without words: nothing to read")
        return replace(self.inputs, text=text, words=None)

    def _read(self, inputs: Inputs, tower: str | None, layer: int | None = None) -> "HeldReading":
        from attnscope.session.questions.held import HeldReading
        from attnscope.session.reading import complete, encode_inputs

        chosen, first = self._choose(inputs, tower)
        key = self._called(inputs), _name(chosen.tower)
        if key not in self._kept:
            assert self._opened is not None, "opened by what is chosen"
            opened = replace(self._opened, chosen=chosen)
            alone = replace(inputs, target=None, target_ids=None, generate=None)  # without a decoder
            read = alone if chosen.kind is Kind.ENCODER else inputs
            reading = complete(encode_inputs(opened, read, self.listener), chosen)
            kept = HeldReading(reading, chosen, self._running)
            # whoever cannot be read is not kept
            kept.head(layer if layer in chosen.layers else first, chosen.heads[0])
            self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > _TEXTS:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _choose(self, inputs: Inputs, tower: str | None) -> "tuple[Chosen, int]":
        from attnscope.session.choosing import choose, towers_of
        from attnscope.session.opening import open_model
        from attnscope.vocabulary import Purpose

        if self._opened is None:
            self._opened = open_model(self.request, inputs, None, Purpose.ANYTHING, self.listener)
        if self._meant is None:
            self._meant = choose(self._model, self.wanted, self.listener, sensed=inputs.sensed)
        mine = self._meant.tower
        if tower is not None:
            mine = next(each for each in towers_of(self._model) if _name(each) == tower)
        first = self._meant.layers[0] if _name(mine) == _name(self._meant.tower) else mine.layers[0]
        return replace(self._meant, tower=mine, layers=mine.layers, heads=_heads(mine)), first

    def _of(self, question: ask.Question) -> "HeldReading":
        kept = self._kept.get((question.text, question.tower))
        if kept is None:
            with self._running:
                kept = self._read(self._asked(question.text), question.tower)
        return kept

    def _asked(self, text: str) -> Inputs:
        return self.inputs if text == self._called(self.inputs) else self._inputs(text)

    def _whole(self, kept: "HeldReading", question: ask.Question) -> "Reading":
        from attnscope.session.reading import complete

        reading = replace(kept.reading, captured=None)
        if not self._model.writes or kept.chosen.kind is not Kind.ENCODER:
            return reading
        return complete(replace(reading, asked=self._asked(question.text)), None)

    def _map(self, kept: "HeldReading", question: ask.OfMap) -> Any:
        from attnscope.results import HeadAttention, MapSettings
        from attnscope.session.opening import look_at, map_head

        head = kept.head(question.layer, question.head)
        if not isinstance(head, HeadAttention):
            raise InputError(f"{self._model.name} returns weights alone here: a map needs queries and keys")
        return map_head(head, MapSettings(), self.listener, look_at(head, _looking(question)))

    def _beside(self, kept: "HeldReading", question: ask.OfOther) -> ask.Beside:
        from attnscope.verbs.compare.difference import compare_results

        place = question.layer, question.head
        with self._running:
            other = self._read(self._inputs(question.other), question.tower)
        first, second = kept.head(*place), other.head(*place)
        try:
            difference = compare_results(first, second, ("the first", "the second"))
        except InputError as error:
            return ask.Beside(second, None, str(error))
        return ask.Beside(second, difference, "")


def _looking(question: ask.OfHead) -> Looking:
    return Looking(question.words, question.special.value)


def _tower(tower: Any) -> Tower:
    return Tower(tower.called, tower.kind, _name(tower), tower.layers, len(_heads(tower)))


def _first(tokens: Tokens, mask: int | None, goes_on: bool) -> int:
    masks = [i for i, token in enumerate(tokens.items) if mask is not None and token.id == mask]
    words = [i for i, token in enumerate(tokens.items) if not token.special]
    return (masks or (words[-1:] if goes_on else words) or [0])[0]


def _mask(reading: "Reading") -> str:
    tokenizer = reading.model.tokenizer
    fills = reading.task == "masked" and tokenizer is not None and reading.asked.ids is None
    fills = fills and reading.asked.chat is None
    return str(tokenizer.mask_token or "") if fills and not reading.asked.sensed else ""


def _name(tower: Any) -> str:
    return f"{tower.kind} {printable(tower.pattern)}"


def _heads(tower: Any) -> tuple[int, ...]:
    return tuple(range(min(tower.heads.values())))
