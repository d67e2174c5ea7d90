"""Answers `explain`: runs `find`, `ablate`, `why`, `compose` and token replacement on one link, in turn.

Each question is the one of its command, asked about the heads that the question before left over. A question
that this model or this text cannot answer is kept with the reason, and the others go on.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ParamSpec, TypeVar

import numpy as np

from attnscope.analysis.answers.question import Question
from attnscope.errors import DoesNotFitError, InputError
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.questions.answers import query_of, question_of, tags
from attnscope.session.questions.replacing import Replacing, replaced_each, word_of
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.verbs.ablate.answer import ablate
from attnscope.verbs.ablate.question import Ablate
from attnscope.verbs.ablate.result import Ablation
from attnscope.verbs.compose.answer import compose
from attnscope.verbs.compose.question import Compose
from attnscope.verbs.compose.result import Composition
from attnscope.verbs.explain.question import Explain
from attnscope.verbs.explain.result import Asked, Explanation, Head, Lost, Replaced, Unasked, that_look
from attnscope.verbs.find.answer import find
from attnscope.verbs.find.result import Finding
from attnscope.verbs.why.answer import why
from attnscope.verbs.why.question import WhyLooks
from attnscope.verbs.why.result import Side, Why
from attnscope.vocabulary import Kind

MOST, TAKEN_APART = 24, 6  # most heads asked about further; most heads whose scores are explained
_SINGLE = "explain takes one token each for --from and --to (find and flow take several), choose one of these"
P = ParamSpec("P")
Answer = TypeVar("Answer")


def check_pair(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Explain) -> None:
    """Raise `InputError` for a link that is missing, ambiguous or masked, before weights load."""
    keys.span(asked.key).one(_SINGLE)
    if queries is None or asked.query is None:
        return
    query, key = queries.span(asked.query).one(_SINGLE), keys.span(asked.key).one(_SINGLE)
    if chosen.kind is Kind.DECODER and key > query:
        raise InputError(f"{queries.named(query)} may not look at {keys.named(key)}, which follows it")


def explain(reading: Reading, chosen: Chosen, asked: Explain) -> Explanation:
    """Explain a link: which heads look, whether the answer needs them, why they look, what the word does.

    `reading` holds the whole decoder input. `InputError` for a link that does not exist; the result lists
    the later questions that could not be asked.
    """
    if reading.asked.goes_on:
        raise InputError("explain reads a text at once: leave --generate out")
    asked = replace(asked, query=query_of(reading, asked))
    queries, keys = reading.sides(chosen.kind)
    if reading.perceived is None:
        check_pair(chosen, queries, keys, asked)
    found = find(reading, chosen, asked.wish)
    query, key = found.question.query, found.question.key
    assert query is not None, "a pair was sought"
    assert key is not None, "a pair has both"
    ablated = Ablate(answer=asked.answer, query=f"@{query}" if tags(reading) else None)
    asking = _Asking(reading, chosen, found, that_look(found)[:MOST], query, key, ablated)
    if asked.answer is not None:
        asking.answer  # noqa: B018 - refused in its words where the model cannot give it
    return asking.explained()


@dataclass(frozen=True, eq=False)
class _Asking:
    """Asks the questions of `explain` about one link, and collects those that could not be asked."""

    reading: Reading
    chosen: Chosen
    found: Finding
    heads: tuple[Head, ...]
    query: int
    key: int
    ablated: Ablate
    unasked: list[Unasked] = field(default_factory=list)

    def explained(self) -> Explanation:
        taken = cut = None
        if self.heads:
            taken = self._ask(Asked.MATTER, self._without, self.reading, self.ablated)
            # notices about the answer were given already
            link = replace(self.ablated, link=f"@{self.query}->@{self.key}")
            cut = self._ask(Asked.LINK, self._without, self._quiet, link)
        every = (self._ask(Asked.WHY, self._why, head) for head in self.heads[:TAKEN_APART])
        whys = tuple(each for each in every if each is not None)
        made = Explanation(self.found, self.heads, taken, cut, whys, None, None)
        if whys and made.lead is not None:
            made = replace(made, composition=self._ask(Asked.READ, self._composition, made.lead))
        if taken is not None:
            made = replace(made, paths=tuple(self._paths(made)))
        replaced = self._ask(Asked.WORD, self._replaced)
        return replace(made, replaced=replaced, unasked=tuple(dict.fromkeys(self.unasked)))

    def _ask(
        self, question: Asked, ask: Callable[P, Answer], *given: P.args, **named: P.kwargs
    ) -> Answer | None:
        try:
            return ask(*given, **named)
        except (InputError, DoesNotFitError) as error:
            self.unasked.append(Unasked(question, str(error)))
            return None

    @cached_property
    def _quiet(self) -> Reading:
        return replace(self.reading, listener=Quiet())  # no notice is given twice

    @cached_property
    def answer(self) -> Question:
        """The question about the named or likeliest answer; `InputError` where the model cannot give it."""
        return question_of(self._quiet, self.ablated.answer, query=self.ablated.query)

    def _without(self, reading: Reading, asked: Ablate) -> Ablation:
        self.answer  # noqa: B018 - refused in its words where there is none
        layers = tuple(sorted({layer for layer, _ in self.heads}))
        return ablate(reading, replace(self.chosen, layers=layers, apart=self.heads), asked)

    def _why(self, head: Head) -> Why:
        one = replace(self.chosen, layers=head[:1], heads=head[1:])
        return why(self.reading, one, WhyLooks(*head, f"@{self.query}", f"@{self.key}"))

    def _composition(self, head: Head) -> Composition:
        tower, model = self.chosen.tower, self.reading.model
        if head[0] == min(tower.layers):
            raise InputError(f"L{head[0]} H{head[1]} is in the first layer: no other head comes before it")
        every = tuple(range(min(count for count in tower.heads.values())))
        whole = replace(self.chosen, layers=tuple(tower.layers), heads=every, apart=())
        return compose(Opened(model, self.reading.task), whole, Compose(*head), self.reading.listener)

    def _paths(self, made: Explanation) -> Iterator[Ablation]:
        sides = set[Side]()
        for each in made.reads:
            early = each.pair.early
            late = [head for head in self.heads if head[0] > early[0]]
            if each.confirmed and each.side not in sides and late:
                sides.add(each.side)
                one = replace(self.chosen, layers=early[:1], heads=early[1:], apart=())
                by = "q" if each.side is Side.QUERY else "k"
                via = ",".join(f"L{layer}H{head}.{by}" for layer, head in late)
                yield ablate(self._quiet, one, replace(self.ablated, via=via))

    def _replaced(self) -> Replaced:
        """Replace each token and measure the answer of `ablate`; in generated text the token after the query.

        For a model without such an answer it measures what `flow` does: the word at the query, or its
        vector.
        """
        tokens = self.found.key_tokens
        question: Question | None = None
        with suppress(InputError):
            question = self.answer
        if question is None or question.asks is Asks.WRITTEN:
            question = word_of(self.reading, self.chosen, self.found.query_tokens, self.query)
        place = self.query if question is None or question.position is None else question.position
        whole = question is not None and question.position is None
        reached = np.ones(len(tokens), dtype=bool)
        if self.chosen.kind is Kind.DECODER and not whole:
            reached[place + 1 :] = False  # tokens after the answer do not affect it
        left = () if self.chosen.kind is Kind.CROSS or whole else (place,)
        asked = Replacing(tokens, reached, place, max(self.chosen.layers), question, left=left)
        made = replaced_each(self.reading, self.chosen, asked)
        if isinstance(made, str):
            raise InputError(made)
        effect, at = made.effect, place if question is None else question.position
        parts = (Lost(each, float(lost)) for each, lost in zip(made.places, effect.lost, strict=True))
        ordered = tuple(sorted(parts, key=lambda part: (-part.change, part.positions)))
        return Replaced(made.by, effect.answer, effect.chance, at, ordered)
