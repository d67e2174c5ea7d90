"""A reading: an open model with its encoded inputs and its decoder's target.

Attention is captured from here, and every question is asked of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from attnscope.attention import Capture
from attnscope.capture import Labels, provenance_of, record
from attnscope.capture.generated import record_written
from attnscope.capture.returned import Returned, read
from attnscope.capture.running import EncodedOnce, if_it_runs
from attnscope.errors import InputError
from attnscope.model.inputs.generation import LIKELIEST, Written, check_room, tokens_read
from attnscope.model.inputs.given import read_vocabulary
from attnscope.model.inputs.rendered import has_template
from attnscope.model.inputs.target import Target
from attnscope.model.inputs.text import Encoded
from attnscope.model.loaded import Model
from attnscope.model.loading.answering import judging
from attnscope.results import Picture, Provenance, Sound
from attnscope.results.base.groups import placed
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened, Opening
from attnscope.session.prompts import texts_of_fields, with_fields
from attnscope.session.request import Inputs, ModelRequest, digests
from attnscope.session.wanted import Wanted
from attnscope.tokens import Frames, Tokens
from attnscope.vocabulary import Kind, Purpose, Route

if TYPE_CHECKING:
    from attnscope.model.loaded import Model
    from attnscope.model.loading.answering import Task
    from attnscope.model.media.perceive import Perceived


@dataclass(frozen=True, eq=False)
class Reading:
    """A model with encoded inputs, and for an encoder-decoder its decoder's `target`.

    `task` is the model's answering task, if it was loaded with a head for one. After generation the attention
    of the heads chosen then is already `captured`. `told` are notes for all results. Where an answer is read
    behind a text, `said` is the text alone. `once` holds the encoder's output from generating the target.
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
        """Keyword arguments of the model's forward."""
        decoder = {} if self.target is None else {"decoder_input_ids": self.target.ids}
        return {**self.encoded.inputs, **decoder}

    @property
    def perceived(self) -> "Perceived | None":
        """The encoded picture or sound; None where only text is read."""
        return cast("Perceived", self.encoded) if self.asked.sensed else None

    def lies_over_medium(self, chosen: Chosen) -> bool:
        """True where keys of the chosen attention are patches or frames, alone or in a text.

        Keys of a decoder's self-attention, and of a text tower beside one that sees, are words alone.
        """
        if self.perceived is None:
            return False
        return self._senses(chosen) or bool(self.tokens_of(chosen.kind).stretches)

    @property
    def medium(self) -> Picture | Sound | None:
        """The picture or the sound that was read, where it is kept, else None."""
        return None if self.perceived is None else self.perceived.medium

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the picture or sound and its padding, and those in `told`."""
        if self.medium is None:
            return self.told
        return (f"over {self.medium.described}", *self._padding(), *self.told)

    def _padding(self) -> Iterator[str]:
        assert self.perceived is not None, "something was heard"
        medium, stretches = self.perceived.medium, self.perceived.positions.stretches
        frames = next((each for each in stretches if isinstance(each, Frames)), None)
        if frames is None or not isinstance(medium, Sound):
            return
        if (padding := frames.count - frames.heard(medium.seconds)) > 1:  # rounding makes one
            masked = any("mask" in name for name in self.perceived.inputs)
            told = "" if masked else ", looked at like any other"
            yield f"{padding:,} of {frames.count:,} frames are silence after its end{told}"

    @contextmanager
    def running(self, doing: str = "") -> Iterator[None]:
        """Context manager around running the model over the inputs; `doing` is shown meanwhile."""
        told = self.listener.working(doing) if doing else nullcontext()
        with told, if_it_runs(self.model.module, self.inputs, self.model.name):
            yield

    @property
    def untouched(self) -> Provenance:
        """Provenance of a plain run without recording."""
        return provenance_of(self.model.module, self.encoded.tokens, {**self.origin(), "route": "untouched"})

    def sides(self, kind: Kind) -> tuple[Tokens, Tokens]:
        """Query tokens and key tokens of one kind of attention."""
        queries = self.tokens_of(kind)
        return queries, self.encoded.tokens if kind is Kind.CROSS else queries

    def origin(self, chosen: Chosen | None = None) -> dict[str, Any]:
        """Provenance fields of the model, the chosen attention, the inputs and their files."""
        read = self.asked.read_again(self.model)
        return origin_of(self.model, chosen) | {"read": read, "files": digests(read)}

    def tokens_of(self, kind: Kind) -> Tokens:
        """Query tokens of one kind of attention."""
        return self.encoded.tokens if kind is Kind.ENCODER or self.target is None else self.target.tokens

    def named_of(self, kind: Kind) -> Tokens:
        """Query tokens for names: without an answer that is read behind the text."""
        return self.said or self.tokens_of(kind)

    def filled(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options whose value names a field, with the field's words (`session.prompts`)."""
        return texts_of_fields(options, self.asked.prompt)

    def capture(
        self,
        chosen: Chosen,
        layers: tuple[int, ...] | None = None,
        *,
        projections: bool = False,
        circuits: bool = False,
    ) -> Capture:
        """The captured attention of the chosen heads, in `layers` (default: the chosen ones).

        With `projections` also the output projections of the heads, where these are found; with `circuits`
        the value projections too. `InputError` for the returned route, which has weights alone.
        """
        if chosen.route is Route.RETURNED:
            raise InputError("--route returned has weights alone: here queries and keys are needed")
        if self.captured is not None:
            return self.captured
        how = {"projections": projections, "circuits": circuits}
        selection = chosen.selection(layers, heads=chosen.heads, **how)
        with self.running():
            captured = record(self.model.module, self.inputs, selection, self.labels(chosen))
        return self._with_windows_named(captured, chosen)

    def attention(self, chosen: Chosen, *, projections: bool = False) -> Capture | Returned:
        """The capture where attention can be recomputed, else the returned weights, with a notice."""
        if self.captured is not None:
            return self.capture(chosen)
        if chosen.block and chosen.route is Route.RETURNED:
            raise InputError(f"no block {chosen.block}: what a model returns is in one piece")
        selection = chosen.selection(heads=chosen.heads, projections=projections)
        labels = self.labels(chosen)
        with self.running():
            attention = read(
                self.model.module, self.inputs, selection, labels, self.listener.notice, self.once
            )
        if isinstance(attention, Capture):
            return self._with_windows_named(attention, chosen)
        if chosen.block:
            raise InputError(f"no block {chosen.block}: what a model returns is in one piece")
        return attention

    def labels(self, chosen: Chosen) -> Labels:
        """The tokens of the positions: of the text, or the known patches or frames."""
        target = None if self.target is None else self.target.tokens
        perceived, source = self.perceived, self.origin(chosen)
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
        own = next(site for site in self.model.sites if site.path == path)
        from attnscope.model.media.perceive import window_names

        names = window_names(self.model, perceived, own, size)
        if names is None:
            return captured
        calls = (replace(c, query_tokens=names[c.block], key_tokens=names[c.block]) for c in captured.calls)
        return replace(captured, calls=tuple(calls))


def origin_of(model: Model, chosen: Chosen | None) -> dict[str, Any]:
    """Provenance fields of a model, and in its command the options that choose this attention."""
    known = model.origin()
    which = () if chosen is None else chosen.which
    return known | {"run": (*run, *which) if (run := known.get("run")) else ()}


def open_chosen(
    opening: Opening, request: ModelRequest, inputs: Inputs, wanted: Wanted, listener: Listener
) -> tuple[Reading, Chosen]:
    """Load the model as far as `wanted` needs it; returns its reading and the chosen heads."""
    opened: Opened = opening(request, inputs, wanted, Purpose.ATTENTION, listener)
    assert opened.chosen is not None, "something was wanted"
    return read_inputs(opened, inputs, listener), opened.chosen


def read_inputs(opened: Opened, inputs: Inputs, listener: Listener) -> Reading:
    """The reading of `inputs` with its decoder target; notices go to the listener."""
    return complete(encode_inputs(opened, inputs, listener), opened.chosen)


def encode_inputs(opened: Opened, inputs: Inputs, listener: Listener) -> Reading:
    """The reading of `inputs` without a decoder target; notices go to the listener."""
    model, ids, words = opened.model, inputs.numbers, inputs.given_words
    if ids is not None or inputs.target_ids is not None:
        model = model.by_number(None if inputs.vocab is None else read_vocabulary(inputs.vocab))
    if inputs.sensed:
        from attnscope.model.media.perceive import read_media

        with listener.working("reading the file"):
            encoded: Encoded = read_media(
                model, image=inputs.image, audio=inputs.audio, texts=inputs.texts(model)
            )
    elif ids is not None:
        encoded = model.encode_numbers(ids, truncate=inputs.truncate)
    elif (chat := inputs.conversation) is not None:
        encoded = model.encode_chat(chat, truncate=inputs.truncate)
    elif words is not None:
        encoded = model.encode_words(words, truncate=inputs.truncate)
    else:
        encoded = model.encode(inputs.texts(model), truncate=inputs.truncate)
    if inputs.prompt.fields:
        encoded = replace(encoded, tokens=with_fields(encoded.tokens, inputs.prompt))
    for notice in (*inputs.remarks, *encoded.notices, *_without_template(model, inputs)):
        listener.notice(notice)
    return Reading(model, inputs, encoded, None, listener, opened.task)


def _without_template(model: "Model", inputs: Inputs) -> tuple[str, ...]:
    if inputs.text is None or inputs.sensed or inputs.conversation is not None or inputs.words is not None:
        return ()
    if not has_template(model.tokenizer):
        return ()
    how = "--system '' has it read as a user's message, --chat FILE.json whole conversations"
    return (f"the text is read without the chat template of {model.name}: {how}",)


def complete(reading: Reading, chosen: Chosen | None) -> Reading:
    """The reading with its decoder target or generated text, as the `chosen` attention needs it.

    None for `chosen` means the whole model.
    """
    most = reading.asked.generate
    if most is not None and chosen is not None:
        return go_on(reading, chosen, most)
    once = EncodedOnce(reading.model.module)
    with once.beside(()):
        target = read_target(reading, None if chosen is None else chosen.kind)
    return replace(reading, target=target, once=once.lend())


def read_target(reading: Reading, kind: Kind | None = None) -> Target | None:
    """Decoder input of an encoder-decoder, the start token alone for encoder attention; else None."""
    model, asked, listener = reading.model, reading.asked, reading.listener
    option = "--target" if asked.target is not None else "--target-ids"
    if not model.writes:
        if asked.given_target:
            raise InputError(f"{model.name} is no encoder-decoder: leave {option} out")
        return None
    if kind is None and reading.task is None and judging(type(model.module)) and not asked.given_target:
        return None  # a classifier makes its decoder's input from its text
    if kind is Kind.ENCODER:
        if asked.given_target:
            raise InputError(
                f"{option} is what the decoder reads, --kind encoder shows the encoder: leave one out"
            )
        return model.opening()
    with listener.working("writing the target"):
        text = asked.answer if asked.target is None else asked.target
        target = model.target(reading.encoded, text, asked.target_numbers)
    target = replace(target, tokens=placed(target.tokens)) if target.written else target
    for notice in target.notices:
        listener.notice(notice)
    if target.written:
        listener.notice(f"{model.name} writes: {target.tokens.sentence}")
    if not target.finished:
        listener.notice(f"it had not come to an end after {len(target.tokens)} tokens: cut there")
    return target


def go_on(reading: Reading, chosen: Chosen, most: int) -> Reading:
    """The reading after generating `most` tokens, with the attention recorded meanwhile."""
    model, encoded = reading.model, reading.encoded
    if reading.task == "masked":
        raise InputError(f"{model.name} fills in blanks and does not go on: leave --generate out")
    given = 1 if model.writes else len(encoded.tokens)
    check_room(given, most, model.limit(), model.name)
    prompt = None if model.writes else encoded.tokens

    def spell(written: Written) -> Tokens:
        return tokens_read(model.tokenizer, written, prompt)

    with reading.listener.working("writing"):
        captured, written = record_written(
            model.module,
            encoded.inputs,
            most,
            chosen.selection(heads=chosen.heads, projections=True),
            Labels(encoded.tokens, source=reading.origin(chosen)),
            spell=spell,
        )
    read = spell(written)
    said = read.texts[-1].strip() or " ".join(read.labels[written.given :]) or "with nothing that is read"
    reading.listener.notice(f"{model.name} goes on, {LIKELIEST}: {said}")
    ended = ", with which it came to an end," if written.finished else ""
    many = len(written.ids) - written.given
    words = "its one new token" if many == 1 else f"of its {many} new tokens the last"
    reading.listener.notice(f"{words}{ended} was not read any more and has no row")
    return replace(_with_text(reading, written, read), captured=captured)


def _with_text(reading: Reading, written: Written, read: Tokens) -> Reading:
    ids = reading.encoded.inputs["input_ids"].new_tensor([written.read])
    if reading.model.writes:
        own = Target(ids, read, True, written.finished, written.chances, written.given)
        return replace(reading, target=own)
    inputs = {"input_ids": ids, "attention_mask": ids.new_ones(ids.shape)}
    taken_inputs = {name: value for name, value in inputs.items() if name in reading.encoded.inputs}
    return replace(reading, encoded=replace(reading.encoded, inputs=taken_inputs, tokens=read))


def read_other(reading: Reading, text: str) -> Reading:
    """The model's reading of another text of as many tokens; `InputError` where the numbers differ."""
    asked = reading.asked
    if asked.sensed or asked.ids is not None:
        raise InputError("outputs of another text go into a text: what is read here is none")
    inputs = replace(asked, text=text, words=None, split=False)
    encoded = encode_inputs(Opened(reading.model, reading.task), inputs, reading.listener)
    mine, its = len(reading.encoded.tokens), len(encoded.encoded.tokens)
    if mine != its:
        lengths = f"the texts have {mine} and {its} tokens"
        raise InputError(f"{lengths}: an output can only stand in the place of one at the same position")
    return replace(encoded, target=reading.target)
