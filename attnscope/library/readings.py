"""Reading and Prompted: a text or many prompts that a model has read, with a method per question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from attnscope.attention import Capture
from attnscope.errors import AttnscopeError, InputError
from attnscope.library.methods import with_questions
from attnscope.process.machine import each_alone
from attnscope.results import Prediction
from attnscope.results.claims.prompts import Prompts, by_reason, lines_told
from attnscope.session.choosing import Chosen, choose
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.prompts import Made
from attnscope.session.question import Answer, Question, R, asks_each
from attnscope.session.questions.prompts import Gathered
from attnscope.session.reading import Reading as SessionReading
from attnscope.session.reading import complete, encode_inputs
from attnscope.session.request import Inputs
from attnscope.session.wanted import Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

if TYPE_CHECKING:
    from attnscope.library.typed import OfPrompted, OfReading
else:
    OfPrompted = OfReading = object


@each_alone
@with_questions
class Reading(OfReading):
    """A model and a text that it has read: every method answers one question about it.

    `layer` and `head` count from 0, negatives from the end; `layers` and `heads` (default: all) are several:
    3, [0, 3], "4-8". `kind` (encoder, decoder, cross), `tower`, `block` and `route` choose among several
    attention towers. `query` and `key` are tokens, by text (`door#2` is the second “door”) or position. `by`
    is the unit of rows and columns: token, word (equal to `words`), sentence or passage; `special` tokens are
    shown (`show`), hidden (`hide`), or left out and the rows renormalised (`renormalise`). `seed` fixes
    random draws.

    `InputError` for a layer, head or token that does not exist, and for questions that the model cannot
    answer; `DoesNotFitError` where memory is too small.
    """

    def __init__(self, opened: Opened, inputs: Inputs, listener: Listener) -> None:
        self._model, self._inputs, self._listener = opened.model, inputs, listener
        self._encoded = encode_inputs(opened, inputs, listener)
        self._complete: dict[str, SessionReading] = {}

    @property
    def tokens(self) -> Tokens:
        """Tokens of the text; those of the encoder where there are two sides."""
        return self._encoded.encoded.tokens

    @property
    def labels(self) -> list[str]:
        """Labels of the tokens."""
        return list(self.tokens.labels)

    def ask(self, question: Question[R]) -> R:
        """The answer to a `question`."""
        return self._answered(question).result

    def _read(self, wanted: Wanted) -> tuple[SessionReading, Chosen]:
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

    def _answered(self, question: Question[R]) -> Answer[R]:
        question, inputs = question.reads(self._inputs)
        if question.wanted is None:
            return question.answered(self._whole(), None)
        own = inputs is self._inputs
        if own and not question.whole:
            return question.answered(*self._read(question.wanted))
        chosen = choose(self._model, question.wanted, self._listener, sensed=self._inputs.sensed)
        read = self._whole() if own else complete(replace(self._encoded, asked=inputs), chosen)
        return question.answered(read, chosen)

    def _whole(self) -> SessionReading:
        if "" not in self._complete:
            self._complete[""] = complete(self._encoded, None)
        return self._complete[""]

    def __repr__(self) -> str:
        read = self.tokens.sentence or f"{len(self.tokens)} positions"
        return f"<{self._model.name} read “{read if len(read) < 100 else read[:99] + '…'}”>"


def _cut(done: SessionReading, chosen: Chosen) -> SessionReading:
    captured: Capture | None = done.captured
    assert captured is not None
    calls = tuple(call for call in captured.calls if call.layer in chosen.layers)
    return replace(done, captured=replace(captured, calls=calls))


@each_alone
@partial(with_questions, asked=asks_each)
class Prompted(OfPrompted):
    """Many prompts, read one after the other; each question is asked of all of them.

    A prompt without an answer is reported to the listener and in `refused`, and the others go on. Options are
    those of one `Reading`, among them `layer`, `head`, `layers`, `heads`, `kind`, `tower`, `block`, `route`,
    `words`, `special`, `by`, `seed`, `query`, `key` and its other `options`; `field:a` names a field of each
    prompt. `InputError` where none of the prompts has an answer.
    """

    def __init__(
        self,
        read: Callable[..., Reading],
        listener: Listener,
        prompts: Sequence[Made],
        options: Mapping[str, Any],
    ) -> None:
        self._read, self._listener, self._prompts, self._options = read, listener, prompts, options

    def __len__(self) -> int:
        return len(self._prompts)

    def ask(self, question: Question[Any]) -> Prompts:
        """The answers to a `question`, one for each prompt, and what they have in common."""
        gathered, first = Gathered(question.over or ""), ""
        for number, made in enumerate(self._prompts, start=1):
            try:
                prompt = made()
                reading = self._read(prompt.text, fields=prompt.fields, **self._options)
                answer = reading._answered(question)
                read = reading._whole() if isinstance(answer.result, Prediction) else reading._encoded
                gathered.add(number, read, answer.result, answer.links)
            except AttnscopeError as error:
                gathered.refuse(number, str(error))
                first = first or f"prompt {number}: {error}"
        for reason, numbers in by_reason(gathered.refused).items():
            which = "prompt" if len(numbers) == 1 else "prompts"
            self._listener.notice(f"{which} {lines_told(numbers)}: {reason}")
        if not gathered.answered:
            raise InputError(f"none of the prompts has an answer; {first}")
        return gathered.result()

    def __repr__(self) -> str:
        return f"<{len(self)} prompts>"
