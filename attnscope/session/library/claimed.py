"""A model with what it has read, and the questions that are answered beside controls, as `find` and `why`."""

from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from attnscope.analysis.claims.finding.shared import InPrompt
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.process.alone import each_alone
from attnscope.results import (
    Ablation,
    Alignment,
    Citation,
    Contributions,
    Explanation,
    Finding,
    Flow,
    Links,
    Timing,
    Why,
)
from attnscope.session.choosing import Chosen, choose
from attnscope.session.effects import Ablating
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.questions.claims.ablation import ablate
from attnscope.session.questions.claims.citing import cite
from attnscope.session.questions.claims.explaining import Linked, explain
from attnscope.session.questions.claims.finding import Wish, find, head_named
from attnscope.session.questions.claims.flow import Meant, flow
from attnscope.session.questions.claims.links import links_in
from attnscope.session.questions.claims.passages import Citing
from attnscope.session.questions.claims.why import OF_ALL, Answering, Link, why, why_answer
from attnscope.session.questions.claims.word_links import AligningWords
from attnscope.session.questions.claims.word_times import TimingWords
from attnscope.session.reading import Reading as SessionReading
from attnscope.session.reading import complete, encode_inputs
from attnscope.session.request import Inputs, Writing
from attnscope.session.wanted import APART, CROSS, READS, Looking, Numbers, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind


@each_alone
class Entered:
    """A model with its inputs, which are read where they are first asked about, and then kept."""

    def __init__(self, opened: Opened, inputs: Inputs, listener: Listener) -> None:
        self._model, self._inputs, self._listener = opened.model, inputs, listener
        self._encoded = encode_inputs(opened, inputs, listener)
        self._complete: dict[str, SessionReading] = {}

    @property
    def tokens(self) -> Tokens:
        """The tokens that were read, those of the encoder where there are two sides."""
        return self._encoded.encoded.tokens

    @property
    def labels(self) -> list[str]:
        """What the tokens are called."""
        return list(self.tokens.labels)

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
class Claimed(Entered):
    """What can be claimed of heads."""

    def find(
        self,
        query: str | int | None = None,
        key: str | int | None = None,
        *,
        pattern: str | None = None,
        like: str | tuple[int, int] | None = None,
        controls: int = 100,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        words: bool = False,
        by: str | None = None,
        special: str | None = None,
        **attention: Any,
    ) -> Finding:
        """Heads ranked by what `query` gives to `key`, by a `pattern`, or `like` a head ("L3H11").

        Each stands beside the same number of `controls`, texts of the same shape with the words exchanged, or
        pictures and sounds with their patches or frames; `attention` is kind, tower, block or route, as in
        `head`. Patterns are previous, next, self, first, same, induction, punctuation and special. With
        `words`, or without `special` tokens, rows are as `head` has them.
        """
        given = head_named(like) if isinstance(like, str) else like
        wish = Wish(query, key, pattern, given, controls, seed)
        return find(
            *self._read(Wanted(layers, heads, takes=APART, **attention)), wish, Looking(words, special, by)
        )

    def align(
        self,
        *,
        gold: str | Path | None = None,
        learn: str | Path | None = None,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> Alignment | Timing:
        """Which word of the source each word of the target stands for; of a sound when each word is heard.

        By the cross-attention of all heads. `gold` and `learn` are files as the command takes them: what the
        answer is held against, and what heads and their sureness are learnt on; `attention` is tower, block
        or route, as in `head`.
        """
        ask = TimingWords if self._inputs.sensed else AligningWords
        asked = ask(*(None if each is None else Path(each) for each in (gold, learn)))
        return asked.answer(*self._read(Wanted(layers, heads, takes=CROSS, **attention)))

    def links(
        self,
        *,
        controls: int = 100,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> Links:
        """Links between two words that no position, distance, key or evenness explains, of all heads.

        They are held against `controls`, the text with its words in other orders; `attention` is kind,
        tower, block or route, as in `head`.
        """
        return self._links_in(controls=controls, seed=seed, layers=layers, heads=heads, **attention).links

    def _links_in(
        self,
        *,
        controls: int = 100,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> InPrompt:
        """The links, with the numbers of all pairs of words."""
        wish = Wish(controls=controls, seed=seed)
        return links_in(*self._read(Wanted(layers, heads, **attention)), wish)

    def flow(
        self,
        query: str | int | None = None,
        *,
        seed: int = 0,
        answer: str | None = None,
        against: str | None = None,
        layers: Numbers = None,
        heads: Numbers = None,
        by: str | None = None,
        **attention: Any,
    ) -> Flow:
        """What reaches `query` from every input token: rollout, flow, rollout by norm, value zeroing.

        From the answer back by gradients: gradient x input, integrated gradients and attention x gradient
        (`attributed`; an absent one says why). Beside them what replacing each input token does to the
        model's answer there, and how far the two agree; with `answer` to that one, and with `against` to its
        lead over another. Without a query a tagger is asked for the token whose tag is surest. `layers` are
        the first ones, by default all; `by` is token, word, sentence or passage; `attention` is kind, tower
        or route, as in `head`.
        """
        looking = Looking(by=by)
        read = self._read(Wanted(layers, heads, **attention))
        return flow(*read, query, seed, looking, Meant(answer, against))

    def ablate(
        self,
        layers: Numbers = None,
        heads: Numbers = None,
        *,
        each: bool = False,
        replacement: str | None = None,
        link: str | None = None,
        answer: str | None = None,
        patch_from: str | None = None,
        rank: bool = False,
        top: int | None = None,
        controls: int | None = None,
        seed: int = 0,
        by: str | None = None,
        part: str = "head",
        at: str | None = None,
        against: str | None = None,
        via: str | None = None,
        query: str | int | None = None,
        **attention: Any,
    ) -> Ablation:
        """What the model's answer becomes without heads, by default without `each` of them in turn.

        The answer is the model's own or the `answer` that is named; a change is of the logarithm of its
        probability, in nats, and stands beside what `controls` other heads, by default all of the layer, do.
        In the place of their outputs stand zeros, or as `replacement` "mean" or another text; `link`
        ("it->door") cuts one link. With `patch_from` every head is patched from that text, with `rank` heads
        are ranked by one backward pass and the `top` ones taken away. `heads` may be of several layers,
        "L1H10,L2H3"; `by` is what ranks, "patching", "importance", "attention-gradient" or "logit". `part`
        takes something else away, "mlp", "attention", "residual" or "position", at all tokens or `at` some,
        "pos:each" for each by itself. `against` is another answer, above which the logit of this one is
        measured; of a model without any head a text whose vector this one's is held against. `via` ("L3H11",
        "L3H11.q", "direct") lets only these heads read what is changed. `query` is the token whose tag is the
        answer, of a model that tags tokens. `attention` is kind, tower or route.
        """
        turn = each or (layers is None and heads is None)
        how = (turn, replacement, link, answer, patch_from, rank, top, controls, seed, by)
        wish = Ablating(*how, part, at, against, via, query)
        wish.check_wanted(layers, heads)
        wanted = Wanted(layers, heads, takes=APART, **attention)
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        return ablate(self._whole(), chosen, wish)

    @overload
    def why(
        self,
        layer: int,
        head: int,
        query: str | int,
        key: str | int,
        *,
        against: str | int | None = None,
        patch_from: str | None = None,
        **attention: Any,
    ) -> Why: ...

    @overload
    def why(
        self,
        *,
        query: str | int | None = None,
        answer: str,
        against: str | None = None,
        patch_from: str | None = None,
    ) -> Contributions: ...

    def why(
        self,
        layer: int | None = None,
        head: int | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        *,
        answer: str | None = None,
        against: str | int | None = None,
        patch_from: str | None = None,
        **attention: Any,
    ) -> Why | Contributions:
        """Why one head looks from `query` at `key`: its score as a sum over parts of the model.

        It is told above the mean of the other keys, or above the key `against`. Beside the share of each
        large part stands what becomes of the score without it: with its mean in its place, or with what it is
        in the text `patch_from`. `attention` is kind, tower or block, as in `head`.

        Or, with `answer` alone: why the model answers that, `against` another answer: its logit, or how far
        it lies above the other one's, as a sum of what every part brings directly; of a tagger it is the tag
        of the token `query`.
        """
        if answer is not None:
            if (layer, head, key) != (None,) * 3 or attention:
                raise InputError(OF_ALL)
            other = None if against is None else str(against)
            return why_answer(self._whole(), Answering(answer, other, patch_from, query))
        if layer is None or head is None or query is None or key is None:
            raise InputError("why takes a layer, a head, a query and a key, or else an answer")
        return why(*self._read(Wanted(layer, head, **attention)), Link(query, key, against, patch_from))

    def cite(
        self,
        answer: str | None = None,
        *,
        generate: int | None = None,
        by: str | None = None,
        context: str | None = None,
        subsets: int | None = None,
        seed: int = 0,
        gradients: bool = True,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> Citation:
        """Which passage each sentence of an `answer` is from, or of at most `generate` tokens of the model's.

        Each passage is taken away, and what a sentence loses decides; beside it stands what attention and
        gradients give to the passages (`columns`). These are units of the text `by` which it is cut, within
        `context`; by default all but the question at its end. Fields of the text that are called "passage 0",
        "passage 1" and so on are the passages where there are any. With `subsets` as many random halves are
        taken away; without `gradients` their columns are left out, which take most of the time. `attention`
        is kind, tower or route, as in `head`.
        """
        if answer is None and generate is None:
            generate = self._inputs.writing.generate
        asked = Citing(answer, generate, by, context, subsets, seed, gradients=gradients)
        wanted = Wanted(layers, heads, takes=READS, **attention)
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        read = replace(self._encoded, asked=replace(self._inputs, answer=answer, writing=Writing()))
        return cite(complete(read, chosen), chosen, asked)

    def explain(
        self,
        query: str | int | None,
        key: str | int,
        *,
        answer: str | None = None,
        controls: int = 100,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> Explanation:
        """One verdict on the link from `query` to `key`, out of all the questions that belong together.

        Which heads look there beyond their `controls`, whether the answer needs them and the link, what their
        scores come from, whom they read, and whether the answer depends on the word. What could not be asked
        is `unasked`, with the reason. `answer` is the answer that is meant, by default the likeliest; without
        a query a tagger is asked for the token whose tag is surest. `attention` is kind or tower, as in
        `head`.
        """
        wanted = Wanted(layers, heads, takes=APART, **attention)
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        return explain(self._whole(), chosen, Linked(query, key, controls, seed, answer))
