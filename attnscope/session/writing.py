"""The model goes on with the text, and what it reads of its own words is looked at too."""

from dataclasses import replace
from typing import TYPE_CHECKING

from attnscope.capture import Labels, Selection
from attnscope.capture.generated import record_written
from attnscope.errors import InputError
from attnscope.model.inputs.generation import Settings, Written, check_room
from attnscope.model.inputs.spelling import tokens_read
from attnscope.model.inputs.target import Target
from attnscope.model.inputs.text import limit_of
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

if TYPE_CHECKING:
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loading.load import Plan


def check_goes_on(planned: "Plan", tower: "Tower") -> None:
    """Raises `InputError` where no token that is generated would be looked at, before weights are read."""
    if tower.kind is not Kind.ENCODER:
        return
    if planned.writes:
        raise InputError(f"what {planned.name} generates its decoder reads: --kind decoder or --kind cross")
    raise InputError(f"{planned.name} is no decoder and writes no text: leave --generate out")


def go_on(reading: Reading, chosen: Chosen, settings: Settings) -> Reading:
    """The reading with what the model wrote, and with the attention of all that it read meanwhile."""
    model, encoded = reading.model, reading.encoded
    if reading.task == "masked":
        raise InputError(f"{model.name} fills in blanks and does not go on: leave --generate out")
    given = 1 if model.writes else len(encoded.tokens)
    check_room(given, settings.most, limit_of(model.tokenizer, model.module.config), model.name)
    prompt = None if model.writes else encoded.tokens

    def spell(written: Written) -> Tokens:
        return tokens_read(model.tokenizer, written, prompt)

    with reading.listener.working("writing"):
        captured, written = record_written(
            model.module,
            encoded.inputs,
            settings,
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
    _tell(model.name, written, read, reading.listener)
    return replace(_with_text(reading, written, read), captured=captured)


def _tell(name: str, written: Written, read: Tokens, listener: Listener) -> None:
    said = read.texts[-1].strip() or " ".join(read.labels[written.given :]) or "with nothing that is read"
    listener.notice(f"{name} goes on, {written.how}: {said}")
    ended = ", with which it came to an end," if written.finished else ""
    many = len(written.ids) - written.given
    words = "its one new token" if many == 1 else f"of its {many} new tokens the last"
    listener.notice(f"{words}{ended} was not read any more and has no row")


def _with_text(reading: Reading, written: Written, read: Tokens) -> Reading:
    """The reading whose text, or whose target, is what the model has read."""
    ids = reading.encoded.inputs["input_ids"].new_tensor([written.read])
    if reading.model.writes:
        chances = written.chances if written.given == 1 else None
        return replace(reading, target=Target(ids, read, True, written.finished, chances))
    inputs = {"input_ids": ids, "attention_mask": ids.new_ones(ids.shape)}
    known = {name: value for name, value in inputs.items() if name in reading.encoded.inputs}
    return replace(reading, encoded=replace(reading.encoded, inputs=known, tokens=read))
