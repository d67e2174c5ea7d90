"""`--generate`: the model goes on with the text, and what it reads of its own words is looked at too."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.cli.groups import Texts
    from attnscope.cli.output import Output
    from attnscope.cli.session import Session
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.inputs.generation import Settings, Written
    from attnscope.model.loading.load import Plan
    from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Writing:
    """How far the model goes on with the text, and how."""

    PANEL = "Text that the model writes"

    generate: options.Generate = None
    sample: options.Sample = None
    temperature: options.Temperature = None
    top_p: options.TopP = None

    def __post_init__(self) -> None:
        drawn = self.temperature is not None or self.top_p is not None
        if self.generate is None and (drawn or self.sample is not None):
            raise InputError("--sample, --temperature and --top-p go with --generate: say how many tokens")
        if drawn and self.sample is None:
            raise InputError("--temperature and --top-p go with --sample: give a seed")
        if self.generate is not None and self.generate < 1:
            raise InputError(f"--generate is {self.generate}: it takes at least 1 token")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise InputError(f"--temperature is {self.temperature:g}: it lies above 0")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"--top-p is {self.top_p:g}: it lies above 0, at most at 1")

    def settings(self) -> "Settings | None":
        """The same for the model, None where it is not to write."""
        if self.generate is None:
            return None
        from attnscope.model.inputs.generation import Settings

        return Settings(self.generate, self.sample, self.temperature, self.top_p)


def check_goes_on(planned: "Plan", tower: "Tower", texts: "Texts") -> None:
    """Raises `InputError` where no token that is generated would be looked at, before weights are read."""
    if texts.target is not None:
        raise InputError("--target is what the decoder reads, --generate has the model write it: choose one")
    if tower.kind == "encoder":
        if planned.writes:
            raise InputError(
                f"what {planned.name} generates its decoder reads: --kind decoder or --kind cross"
            )
        raise InputError(f"{planned.name} is no decoder and writes no text: leave --generate out")


def gone_on(session: "Session", settings: "Settings", output: "Output") -> "Session":
    """The session with what the model wrote, and with the attention of all that it read meanwhile."""
    from attnscope.capture import provenance_of
    from attnscope.capture.generated import capture_written
    from attnscope.model.inputs.generation import check_room
    from attnscope.model.inputs.spelling import tokens_read
    from attnscope.model.inputs.text import limit_of
    from attnscope.results import Route

    model, encoded = session.model, session.encoded
    if session.task == "masked":
        raise InputError(f"{model.name} fills in blanks and does not go on: leave --generate out")
    given = 1 if model.writes else len(encoded.tokens)
    check_room(given, settings.most, limit_of(model.tokenizer, model.module.config), model.name)
    prompt = None if model.writes else encoded.tokens

    def spell(written: "Written") -> "Tokens":
        return tokens_read(model.tokenizer, written, prompt)

    with output.working("writing"):
        captured, written = capture_written(
            model.module,
            encoded.inputs,
            settings,
            layers=session.layers,
            heads=session.heads,
            kind=session.kind,
            tower=session.tower.pattern,
            route=None if session.route is None else Route(session.route),
            tokens=encoded.tokens,
            spell=spell,
            provenance=provenance_of(model.module, encoded.tokens, model.origin()),
        )
    read = spell(written)
    _tell(model.name, written, read, output)
    return replace(_with_text(session, written, read), captured=captured)


def _tell(name: str, written: "Written", read: "Tokens", output: "Output") -> None:
    said = read.texts[-1].strip() or " ".join(read.labels[written.given :]) or "with nothing that is read"
    output.notice(f"{name} goes on, {written.how}: {said}")
    ended = ", with which it came to an end," if written.finished else ""
    many = len(written.ids) - written.given
    words = "its one new token" if many == 1 else f"of its {many} new tokens the last"
    output.notice(f"{words}{ended} was not read any more and has no row")


def _with_text(session: "Session", written: "Written", read: "Tokens") -> "Session":
    """The session whose text, or whose target, is what the model has read."""
    from attnscope.model.inputs.target import Target

    ids = session.encoded.inputs["input_ids"].new_tensor([written.read])
    if session.model.writes:
        chances = written.chances if written.given == 1 else None
        return replace(session, target=Target(ids, read, True, written.finished, chances))
    inputs = {"input_ids": ids, "attention_mask": ids.new_ones(ids.shape)}
    known = {name: value for name, value in inputs.items() if name in session.encoded.inputs}
    return replace(session, encoded=replace(session.encoded, inputs=known, tokens=read))
