"""From what is asked for to a reading: the model opened, its inputs made, what its decoder reads settled."""

from dataclasses import replace
from typing import TYPE_CHECKING

from attnscope.capture import Labels, Selection
from attnscope.capture.encoded_once import EncodedOnce
from attnscope.capture.generated import record_written
from attnscope.errors import InputError
from attnscope.model.inputs.generation import LIKELIEST, Written, check_room, tokens_read
from attnscope.model.inputs.numbered import read_vocabulary
from attnscope.model.inputs.rendered import has_template
from attnscope.model.inputs.target import Target
from attnscope.model.inputs.text import Encoded
from attnscope.model.loading.answering import judging
from attnscope.results.base.groups import placed
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.prompts import with_fields
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

if TYPE_CHECKING:
    from attnscope.model.loaded import Model
    from attnscope.session.opening import Check


def open_chosen(
    request: ModelRequest,
    inputs: Inputs,
    wanted: Wanted,
    listener: Listener,
    purpose: Purpose = Purpose.ATTENTION,
    check: "Check | None" = None,
) -> tuple[Reading, Chosen]:
    """The model that is asked for, loaded as far as `wanted` needs it, what it reads, and what is meant."""
    opened = open_model(request, inputs, wanted, purpose, listener, check)
    assert opened.chosen is not None, "something was wanted"
    return read_inputs(opened, inputs, listener), opened.chosen


def read_inputs(opened: Opened, inputs: Inputs, listener: Listener) -> Reading:
    """What `opened` reads of `inputs`, down to the decoder; what the user should know about that is told."""
    return complete(encode_inputs(opened, inputs, listener), opened.chosen)


def encode_inputs(opened: Opened, inputs: Inputs, listener: Listener) -> Reading:
    """What the user gave as the model reads it; what its decoder reads is not settled yet."""
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
    """The reading with what the decoder reads when `chosen` is looked at, or the whole model (None)."""
    most = reading.asked.writing.generate
    if most is not None and chosen is not None:
        return go_on(reading, chosen, most)
    once = EncodedOnce(reading.model.module)
    with once.beside(()):
        target = read_target(reading, None if chosen is None else chosen.kind)
    return replace(reading, target=target, once=once.lend())


def read_target(reading: Reading, kind: Kind | None = None) -> Target | None:
    """What the decoder beside an encoder reads; when only the encoder is looked at, no more than it takes."""
    model, asked, listener = reading.model, reading.asked, reading.listener
    option = "--target" if asked.target is not None else "--target-ids"
    if not model.writes:
        if asked.given_target:
            raise InputError(f"{model.name} is no encoder-decoder: leave {option} out")
        return None
    if kind is None and reading.task is None and judging(type(model.module)) and not asked.given_target:
        return None  # a classifier makes of its text itself what its decoder reads
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
    """The reading with what the model wrote, and with the attention of all that it read meanwhile."""
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
            Selection(
                layers=chosen.layers,
                heads=chosen.heads,
                kind=chosen.kind,
                tower=chosen.tower.pattern,
                route=chosen.route,
                projections=True,
            ),
            Labels(encoded.tokens, source=model.origin()),
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
