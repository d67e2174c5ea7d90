"""A model in memory: what `attnscope.load` and `attnscope.wrap` return."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnscope.analysis.claims.finding.needles import Fact
from attnscope.capture.following.describe import remarks
from attnscope.errors import InputError
from attnscope.model.inputs.chat import Chat, chat_of, read_chat
from attnscope.model.inputs.tokenizer import Tokenizer
from attnscope.process.alone import each_alone
from attnscope.results import Composition, Dependencies, Drift, Referee, Retrieval
from attnscope.results.claims.prompts import Prompt
from attnscope.session.choosing import choose, towers_of
from attnscope.session.library.prompted import Prompted
from attnscope.session.library.readings import Reading
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.prompts import SPANS, TEXT, Field, prompt_of, prompts_of
from attnscope.session.questions.claims.composition import DRAWS, CompositionQuestion, compose_in
from attnscope.session.questions.claims.drift import DriftQuestion, drift_of
from attnscope.session.questions.claims.judging import Judging, cases_in, judge
from attnscope.session.questions.claims.relations import find_relations_in
from attnscope.session.questions.claims.retrieving import LENGTHS, NEEDLES, Retrieving, retrieve
from attnscope.session.questions.claims.treebank import BATCH, TreebankQuestion
from attnscope.session.reading import encode_inputs
from attnscope.session.request import Inputs, ModelRequest, Writing
from attnscope.session.wanted import READS, Numbers, Wanted


def _chat(given: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | Path | None) -> Chat | None:
    if given is None:
        return None
    return read_chat(Path(given)) if isinstance(given, str | Path) else chat_of(given)


@each_alone
class Model:
    """A model in memory, which `load` and `wrap` return: `read` gives it something to read.

    In all methods `layers` and `heads`, by default all, are numbers from 0 (3, -1, [0, 3], "4-8"), heads also
    with their layer ("L3H11"); `kind` (encoder, decoder, cross), `tower`, `block` and `route` choose among
    several attentions of one model. `seed` repeats what is drawn by lot. Numbers that are not there, and
    questions that such a model has no answer to, raise `InputError`.
    """

    def __init__(self, opened: Opened, listener: Listener, handed_over: Any = None) -> None:
        self._opened, self._listener = opened, listener
        self._handed_over = opened.model.module if handed_over is None else handed_over
        self._remarked: set[str] = set()

    @property
    def name(self) -> str:
        """What it is called in results: the name that it was loaded by, or its class."""
        return self._opened.model.name

    @property
    def module(self) -> Any:
        """The model of transformers itself."""
        return self._opened.model.module

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers itself; None where the model reads no text."""
        tokenizer = self._opened.model.tokenizer
        return tokenizer.own if isinstance(tokenizer, Tokenizer) else tokenizer

    def _remark(self) -> None:
        for remark in remarks(self._handed_over, self.name):
            if remark not in self._remarked:
                self._remarked.add(remark)
                self._listener.notice(remark)

    @property
    def towers(self) -> dict[str, dict[int, int]]:
        """Where it has attention: by tower how many query heads each layer has, 0 where that is not told."""
        return {tower.called: dict(tower.heads) for tower in towers_of(self._opened.model)}

    def read(
        self,
        text: str | None = None,
        *,
        pair: str | None = None,
        target: str | None = None,
        image: str | Path | None = None,
        audio: str | Path | None = None,
        generate: int | None = None,
        truncate: bool = False,
        words: Sequence[str] | None = None,
        ids: str | Sequence[int] | None = None,
        vocab: str | Path | None = None,
        target_ids: str | Sequence[int] | None = None,
        chat: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | Path | None = None,
        system: str | None = None,
        fields: Mapping[str, str | tuple[int, int] | Field] | None = None,
    ) -> "Reading":
        """What the model reads: a `text` or a `pair`, a picture or a sound; `generate` tokens are its own.

        `image` and `audio` are files. What is generated is the likeliest each time. A text that is longer
        than the model reads raises `InputError`, or is cut with `truncate`. `target` is what the decoder of
        an encoder-decoder reads, `target_ids` the same as numbers (default: what the model writes). In place
        of a text stand its `words`, cut already, or `ids`, exactly these tokens, spelled by the tokenizer or
        as in the file `vocab`, or a `chat`: messages ({"role": ..., "content": ...}), a mapping that has
        them beside `tools` and what else the model's chat template knows, or a JSON file of either. With
        `system`, which may be empty, a text is the user's message behind that. `fields` are parts of the
        text by name, their words or their characters: `field:a` then names the tokens of that one.
        """
        if all(each is None for each in (text, image, audio, words, ids, chat)):
            raise InputError("give a text to read, its words or ids, a chat, or a file with image or audio")
        if words is not None and (text is not None or isinstance(words, str) or not words):
            raise InputError("words are a list of strings, at least one, in place of a text")
        self._remark()
        picture, sound, spelled = (None if file is None else Path(file) for file in (image, audio, vocab))
        inputs = Inputs(
            text if words is None else " ".join(words),
            pair,
            target,
            picture,
            sound,
            Writing(generate),
            truncate,
            split=words is not None,
            words=None if words is None else tuple(words),
            ids=ids,
            vocab=spelled,
            target_ids=target_ids,
            chat=_chat(chat),
            system=system,
            fields={} if fields is None else prompt_of({TEXT: text, SPANS: fields}).fields,
        )
        return Reading(self._opened, inputs, self._listener)

    def prompts(
        self,
        texts: str | Sequence[str | Mapping[str, Any]],
        fill: Sequence[Mapping[str, str]] | None = None,
        **read: Any,
    ) -> "Prompted":
        """Many prompts, of which one question is asked: `texts`, or texts with fields by name.

        `[{"text": "Mary gave Ann a book", "spans": {"a": "Mary"}}]`; or a template, "{a} gave {b} a
        book", that is filled in from each of `fill`. `field:a` names the tokens of a field. Other options are
        those of `read`.
        """
        return Prompted(self.read, self._listener, prompts_of(texts, fill), read)

    def dependencies(
        self,
        path: str | Path,
        relation: str | None = None,
        *,
        limit: int | None = None,
        batch: int = BATCH,
        layers: Numbers = None,
        heads: Numbers = None,
        kind: str | None = None,
        tower: str | None = None,
        block: int = 0,
        route: str | None = None,
    ) -> Dependencies:
        """Which head finds which grammatical relation of a treebank in CoNLL-U, beside the best fixed offset.

        `path` is its file. With a `relation` all heads are shown for that one. The first `limit` sentences
        are read, by default all, at most `batch` of one length at once.
        """
        self._remark()
        asked = TreebankQuestion(Path(path), relation, limit, batch)
        wanted = Wanted(layers, heads, kind, tower, block, route)
        chosen = choose(self._opened.model, wanted, self._listener, sensed=False)
        return find_relations_in(self._opened, chosen, asked, self._listener)

    def compare(
        self,
        tuned: "Model | str | Path",
        texts: Sequence[str],
        *,
        fail_above: float | None = None,
        layers: Numbers = None,
        heads: Numbers = None,
        kind: str | None = None,
        tower: str | None = None,
        truncate: bool = False,
        seed: int = 0,
    ) -> Drift:
        """How far the attention of every head moved from this model to a `tuned` one, over the `texts`.

        That is a model of the same shape, or its name, an adapter's folder as well. Beside it stands how far
        this model moves from itself in another precision, what a head does by its own weights, and what
        putting the old head back does to the answer. `exceeding` of the result are the heads that moved
        beyond `fail_above`, a share: .05 is 5 % of what a head's queries give. Texts that are too long are
        cut with `truncate`.
        """
        self._remark()
        other = tuned if isinstance(tuned, Model) else opened(ModelRequest(str(tuned)), self._listener)
        other._remark()
        given = tuple(Prompt(number, text) for number, text in enumerate(texts, start=1))
        asked = DriftQuestion(given, limit=fail_above, inputs=Inputs(truncate=truncate), seed=seed)
        wanted = Wanted(layers, heads, kind, tower)
        before, after = (
            replace(each, chosen=choose(each.model, wanted, self._listener, sensed=False))
            for each in (self._opened, other._opened)
        )
        return drift_of(before, after, asked, self._listener)

    def cite(
        self,
        template: str,
        cases: str | Path,
        *,
        generate: int | None = None,
        subsets: int | None = None,
        seed: int = 0,
        gradients: bool = True,
        layers: Numbers = None,
        heads: Numbers = None,
        kind: str | None = None,
        tower: str | None = None,
        system: str | None = None,
    ) -> Referee:
        """Ways to cite side by side, over the `cases` of a file of JSON lines whose source is known.

        Each has `passages`, a `question`, an `answer` (without one the model writes at most `generate`
        tokens), and its `source`, None for none of them; the `template` makes a prompt of it,
        "{passages} Question: {question} Answer:", behind the `system` message. `subsets` and
        `gradients` are those of `Reading.cite`.
        """
        self._remark()
        inputs = Inputs(template, system=system)
        how = generate, subsets, seed, gradients
        asked = Judging(cases_in(Path(cases)), inputs, str(cases), *how)
        wanted = Wanted(layers, heads, kind, tower, takes=READS)
        chosen = choose(self._opened.model, wanted, self._listener, sensed=False)
        return judge(encode_inputs(self._opened, asked.first, self._listener), chosen, asked)

    def retrieval(
        self,
        text: str | None = None,
        facts: Sequence[Fact] = (),
        *,
        lengths: Sequence[int] = LENGTHS,
        needles: int = NEEDLES,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        kind: str | None = None,
        tower: str | None = None,
    ) -> Retrieval:
        """Which heads fetch a fact that is asked for, out of texts of these `lengths` in tokens.

        So many `needles` for each length, a fact with its question and answer, stand at seeded depths of the
        `text`; without `facts` and a text bundled ones are taken. Beside each head stands how often it looks
        at another fact, and what the model answers without the heads that are named.
        """
        self._remark()
        asked = Retrieving(text, tuple(facts), tuple(lengths), needles, seed)
        chosen = choose(self._opened.model, Wanted(layers, heads, kind, tower), self._listener, sensed=False)
        return retrieve(encode_inputs(self._opened, asked.first, Quiet()), chosen, asked)

    def composition(
        self,
        layer: Numbers = None,
        head: Numbers = None,
        *,
        through: str | None = None,
        draws: int = DRAWS,
        seed: int = 0,
        kind: str | None = None,
        tower: str | None = None,
        route: str | None = None,
    ) -> Composition:
        """How much of what later heads read earlier ones write, beside random circuits; no text is needed.

        Of all pairs, or of one `layer` and `head` with all before and after it; `through` the later head's
        query, key or value, by default each. `draws` random circuits of the same singular values are drawn.
        """
        self._remark()
        asked = CompositionQuestion(layer, head, through, draws, seed)
        wanted = Wanted(kind=kind, tower=tower, route=route)
        chosen = choose(self._opened.model, wanted, self._listener, sensed=False)
        return compose_in(self._opened, chosen, asked, self._listener)

    def __repr__(self) -> str:
        places = ", ".join(
            f"{name} {len(layers)} layers x {max(layers.values())} heads"
            for name, layers in self.towers.items()
        )
        return f"<attnscope model {self.name}: {places or 'no attention'}>"


def opened(request: ModelRequest, listener: Listener) -> Model:
    """The model that is asked for, in memory for whatever may be asked of it."""
    return Model(open_model(request, Inputs(), None, Purpose.ANYTHING, listener), listener)
