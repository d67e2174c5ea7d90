"""Model: a model in memory, as `attnscope.load` and `attnscope.wrap` return it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attnscope.capture.following.describe import remarks
from attnscope.errors import InputError
from attnscope.library.methods import with_questions
from attnscope.library.readings import Prompted, Reading
from attnscope.model.inputs.text import Tokenizer
from attnscope.process.machine import each_alone
from attnscope.session.choosing import choose, towers_of
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import Opened, open_model
from attnscope.session.prompts import prompts_of
from attnscope.session.question import OfModel as AskedOfModel
from attnscope.session.question import Question, R, taking
from attnscope.session.reading import encode_inputs
from attnscope.session.request import InputOptions, Inputs, ModelRequest
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.library.typed import OfModel
else:
    OfModel = object


@each_alone
@with_questions
class Model(OfModel):
    """A model in memory, which `load` and `wrap` return; its `read` reads a text, picture or sound.

    In all methods `layers` and `heads` (default: all) are numbers from 0 (3, -1, [0, 3], "4-8"), heads also
    with their layer ("L3H11"); `kind` (encoder, decoder, cross), `tower`, `block` and `route` choose among
    several attention towers. `seed` fixes random draws. `InputError` for numbers that do not exist, and for
    questions that the model cannot answer.
    """

    def __init__(self, opened: Opened, listener: Listener, handed_over: Any = None) -> None:
        self._opened, self._listener = opened, listener
        self._handed_over = opened.model.module if handed_over is None else handed_over
        self._remarked: set[str] = set()

    @property
    def name(self) -> str:
        """The model's name in results: the name that it was loaded by, or its class."""
        return self._opened.model.name

    @property
    def module(self) -> Any:
        """The transformers model itself."""
        return self._opened.model.module

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer itself; None where the model reads no text."""
        tokenizer = self._opened.model.tokenizer
        return tokenizer.own if isinstance(tokenizer, Tokenizer) else tokenizer

    def _remark(self) -> None:
        for remark in remarks(self._handed_over, self.name):
            if remark not in self._remarked:
                self._remarked.add(remark)
                self._listener.notice(remark)

    @property
    def towers(self) -> dict[str, dict[int, int]]:
        """Query heads per layer, by attention tower; 0 where the number is unknown."""
        return {tower.called: dict(tower.heads) for tower in towers_of(self._opened.model)}

    @taking(InputOptions)
    def read(self, asked: InputOptions) -> Reading:
        """Read a `text` or a `pair`, a picture or a sound, and let the model `generate` further tokens.

        `image` and `audio` are files. Generation is greedy. A text that is too long raises `InputError`, or
        is cut with `truncate`. `target` is the decoder's text in an encoder-decoder, `target_ids` its token
        ids (default: what the model generates). With `split` the words of a text are those between its
        blanks. In place of a text: its `words`, split already; or token `ids`, spelled by the tokenizer or
        the file `vocab`; or a `chat`, which is messages ({"role": ..., "content": ...}), a mapping with
        messages, `tools` and other variables of the chat template, or a JSON file of either. With `system`,
        which may be empty, the text becomes the user message after it. `fields` are named parts of the text,
        as words or character positions: `field:a` then names the tokens of field a.
        """
        if all(each is None for each in (asked.text, asked.image, asked.audio, asked.ids, asked.chat)):
            raise InputError("give a text to read, its words or ids, a chat, or a file with image or audio")
        self._remark()
        return Reading(self._opened, Inputs(**vars(asked)), self._listener)

    def prompts(
        self,
        texts: str | Sequence[str | Mapping[str, Any]],
        fill: Sequence[Mapping[str, str]] | None = None,
        **read: Any,
    ) -> "Prompted":
        """Many prompts for one question: `texts`, or texts with fields by name.

        Such as `[{"text": "Mary gave Ann a book", "spans": {"a": "Mary"}}]`; or a template, "{a} gave {b} a
        book", filled from each mapping of `fill`. `field:a` names the tokens of field a. Other options are
        those of `read`.
        """
        return Prompted(self.read, self._listener, prompts_of(texts, fill), read)

    def ask(self, question: Question[R]) -> R:
        """The answer to a `question` that needs no text, or makes its texts itself."""
        self._remark()
        asked, inputs = question.reads(Inputs())
        wanted, model = question.wanted, self._opened.model
        chosen = None if wanted is None else choose(model, wanted, self._listener, sensed=False)
        if isinstance(question, AskedOfModel):
            found: R = question.answer_in(replace(self._opened, chosen=chosen), self._listener)
            return found
        listener = Quiet() if question.OWN_TEXTS else self._listener
        return asked.answered(encode_inputs(self._opened, inputs, listener), chosen).result

    def __repr__(self) -> str:
        places = ", ".join(
            f"{name} {len(layers)} layers x {max(layers.values())} heads"
            for name, layers in self.towers.items()
        )
        return f"<attnscope model {self.name}: {places or 'no attention'}>"


def opened(request: ModelRequest, listener: Listener) -> Model:
    """Open the requested model, loaded for any question."""
    return Model(open_model(request, Inputs(), None, Purpose.ANYTHING, listener), listener)
