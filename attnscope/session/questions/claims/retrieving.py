"""Which heads fetch facts from a long text: looked at where the answer is written, and taken away.

Every text has two facts, and asks for one of them: a head that looks at the other as often looks at facts,
and fetches none (after Wu et al. 2024). Other facts are asked for without the heads that are named.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb, log
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from attnscope import incoming
from attnscope.analysis.claims.ablation import replacing
from attnscope.analysis.claims.ablation.question import written_at
from attnscope.analysis.claims.finding.needles import (
    Fact,
    Planted,
    bundled_facts,
    bundled_text,
    planted,
)
from attnscope.analysis.claims.relations.ranking import wilson
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import Change
from attnscope.capture.intervening.experiments import Others, experiments_on
from attnscope.capture.running import if_it_runs
from attnscope.errors import InputError
from attnscope.model.inputs.text import limit_of
from attnscope.model.loading.load import Plan
from attnscope.model.loading.tokenizer import tokenizer_for
from attnscope.results.claims.retrieval import (
    Confirmation,
    Head,
    Masked,
    Needle,
    Retrieval,
)
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.planted_texts import (
    Asked,
    Looks,
    read_planted,
    sampled,
    size_by,
)
from attnscope.session.questions.claims.rows import fused_where_long
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.session.selection import check_seed
from attnscope.vocabulary import Kind, Route

RETRIEVAL = "retrieval"
LENGTHS, NEEDLES, GROUPS, TRIED = (256,), 20, 10, 6
_KEYS = "needle", "question", "answer"


@dataclass(frozen=True)
class Retrieving:
    """Facts (none: bundled ones), put into a text (none: a bundled one), so many for each of the lengths.

    Bundled facts are asked for by a question, or by a sentence that `goes_on` with the answer.
    """

    text: str | None = None
    facts: tuple[Fact, ...] = ()
    lengths: tuple[int, ...] = LENGTHS
    needles: int = NEEDLES
    seed: int = 0
    goes_on: bool = False

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise InputError("--lengths are numbers of tokens: 512,2048")
        if not 2 <= self.needles <= 500:
            raise InputError(f"--needles {self.needles}: give 2 to 500, for each length")
        check_seed(self.seed)

    @property
    def first(self) -> Inputs:
        """A fact and its question alone, by which a model is opened."""
        fact = self.facts[0] if self.facts else bundled_facts(1, self.seed)[0]
        return Inputs(f"{fact.needle} {fact.question}", answer=fact.answer)

    def texts(self, again: bool, size: Any) -> list[Planted]:
        """Those of which heads are scored, or others, to ask `again`."""
        seed, hay = 2 * self.seed + again, self.text or bundled_text()
        facts = self.facts or bundled_facts(self.needles, seed, self.goes_on)
        return planted(facts, hay, self.lengths, self.needles, seed, size)

    def tried(self, goes_on: bool, size: Any) -> list[Planted]:
        """A few others of the shortest length, by which it is seen how a model wants to be asked."""
        seed, hay = -1 - self.seed, self.text or bundled_text()
        return planted(bundled_facts(TRIED, seed, goes_on), hay, (min(self.lengths),), TRIED, seed, size)


def lengths_in(given: str) -> tuple[int, ...]:
    """`512,2048`."""
    try:
        return tuple(int(each) for each in given.split(","))
    except ValueError:
        raise InputError(f"--lengths '{given}': numbers of tokens, 512,2048") from None


def facts_in(file: Path) -> tuple[Fact, ...]:
    """The facts of a file of JSON lines; `InputError` with the number of the line that is none."""
    name, found = incoming.named(file), list[Fact]()
    incoming.check_there(file, "the facts")
    for number, raw in incoming.whole_lines(file, "the facts"):
        if not raw.strip():
            continue
        given, where = incoming.parsed(raw, f"{name}:{number}"), f"{name}:{number}"
        for key in _KEYS:
            if not isinstance(given, dict) or not isinstance(given.get(key), str) or not given[key].strip():
                wanted = '{"needle": "...", "question": "...", "answer": "..."}'
                raise InputError(f"{where}: it has no text under '{key}': a fact is {wanted}")
        found.append(Fact(*(given[key].strip() for key in _KEYS)))
    if len({each.answer for each in found}) < 2:
        raise InputError(
            f"{name}: facts of two different answers are needed, one is asked for beside another"
        )
    return tuple(found)


def check_retrieving(planned: Plan, chosen: Chosen, *, asked: Retrieving, code: bool = False) -> None:
    """`InputError` for attention that writes no answer, and for lengths, before weights are read."""
    _check_kind(chosen, planned.writes)
    tokenizer = tokenizer_for(planned.model_class, planned.checkpoint.words, code, True)
    if tokenizer is not None:
        _check_lengths(asked.lengths, limit_of(tokenizer, planned.skeleton), planned.name)


def _check_kind(chosen: Chosen, beside_encoder: bool) -> None:
    if chosen.kind is Kind.ENCODER or (beside_encoder and chosen.kind is not Kind.CROSS):
        crosses = ": --kind cross does" if beside_encoder else ", and this model writes none"
        raise InputError(
            f"--pattern {RETRIEVAL} looks where a model writes an answer behind a text: {chosen.kind} "
            f"attention does not{crosses}"
        )


def _check_lengths(lengths: Sequence[int], limit: int | None, name: str) -> None:
    if limit is not None and max(lengths) > limit:
        raise InputError(f"--lengths {max(lengths)}: {name} reads at most {limit:,} tokens")


def retrieve(reading: Reading, chosen: Chosen, asked: Retrieving) -> Retrieval:
    """Every chosen head over all texts; `InputError` for a model that writes no answer, and for lengths."""
    _check_kind(chosen, reading.model.writes)
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: no head can be taken away")
    reading = replace(reading, model=reading.model.settled())
    model, listener = reading.model, reading.listener
    if model.tokenizer is None:
        raise InputError("facts are put into a text: give a model with its tokenizer")
    _check_lengths(asked.lengths, model.limit(), model.name)
    asked, notes = _as_answered(reading, chosen, asked)
    seen, needles, looks = dict[int, Any](), dict[int, Needle](), Looks(reading, chosen)
    texts = asked.texts(again=False, size=size_by(reading))
    sample = sampled(texts)
    for done, number in enumerate(sorted(range(len(texts)), key=lambda number: number not in sample)):
        with listener.working(f"fact {done + 1} of {len(texts)}"):
            one = read_planted(reading, chosen, texts[number])
            needles[number], seen[number] = looks.at(one, certify=number in sample)
    asks, places = (tuple(by_number[i] for i in range(len(texts))) for by_number in (needles, seen))
    first, first_other, weights, weights_other = np.moveaxis(np.array(places), (0, 1, 2, 3), (3, 1, 0, 2))
    right = [i for i, each in enumerate(asks) if each.right]
    low, high, chance = certainty(first[..., right], first_other[..., right])
    made = Retrieval(
        asks, chosen.kind, chosen.layers, chosen.heads, first, first_other, weights, weights_other,
        low, high, chance, None, _how(asked), looks.certified, looks.provenance, looks.tower, asked.seed,
        notes=notes, sampled=sample, failed=looks.failed, acts=looks.acts,
    )  # fmt: skip
    if not made.named:
        return made
    return replace(made, confirmation=confirmed(made, reading, chosen, asked))


def _how(asked: Retrieving) -> str:
    own = "facts of the file" if asked.facts else "bundled facts"
    form = ", as sentences to go on with" if asked.goes_on else ""
    return f"{own} in {'the text' if asked.text else 'a bundled text'}{form}"


def _as_answered(reading: Reading, chosen: Chosen, asked: Retrieving) -> tuple[Retrieving, tuple[str, ...]]:
    """Bundled facts as the model answers more of a few others, and a note of that.

    Where it answers as many either way, as it thinks the right answers likelier.
    """
    if asked.facts:
        return asked, ()
    size, found = size_by(reading), list[tuple[int, float]]()
    for goes_on in (False, True):
        with reading.listener.working("trying how the model is to be asked"):
            needles = [_alone(read_planted(reading, chosen, each)) for each in asked.tried(goes_on, size)]
        likely = sum(log(max(each.probability, sys.float_info.min)) for each in needles)
        found.append((sum(each.right for each in needles), likely))
        if found[0][0] == TRIED:
            return asked, ()
    (questions, _), (sentences, _) = found
    others = (
        f"of {TRIED} other facts it answers {sentences} as sentences to go on with, {questions} as questions"
    )
    return replace(asked, goes_on=found[1] > found[0]), (others,)


def _alone(one: Asked) -> Needle:
    reading = one.answers.reading
    module, inputs, name = reading.model.module, reading.inputs, reading.model.name
    with if_it_runs(module, inputs, name), fused_where_long(reading):
        return one.needle(one.answers.answered.chances())


def certainty(
    first: Float[np.ndarray, "layer head needle"], other: Float[np.ndarray, "layer head needle"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of the 95 % interval of each score, and the sign test of the one beside the other."""
    count, shape = first.shape[-1], first.shape[:2]
    low, high, chance = np.full((3, *shape), np.nan) if not count else np.empty((3, *shape))
    for place in np.ndindex(shape) if count else ():
        low[place], high[place] = wilson(float(first[place].mean()), count)
        more, less = int((first[place] > other[place]).sum()), int((first[place] < other[place]).sum())
        both = more + less
        chance[place] = sum(comb(both, k) for k in range(more, both + 1)) / 2**both
    return low, high, chance


def confirmed(made: Retrieval, reading: Reading, chosen: Chosen, asked: Retrieving) -> Confirmation:
    """Other facts asked for with all heads, without the named ones, and without as many others."""
    groups = (made.named, *other_groups(made, asked.seed))
    answers = 0
    left = np.zeros(len(groups), dtype=int)
    texts, masked = asked.texts(again=True, size=size_by(reading)), _Without(chosen, groups)
    for number, each in enumerate(texts, start=1):
        with reading.listener.working(f"without heads: fact {number} of {len(texts)}"):
            whole, without = masked.right(read_planted(reading, chosen, each))
        answers += whole
        left += np.array(without) & whole
    told = [Masked(heads, int(right)) for heads, right in zip(groups, left, strict=True)]
    ends, others_low = (float("nan"), float("nan")), float("nan")
    if answers:
        ends = wilson(told[0].right / answers, answers)
    if answers and len(told) > 1:
        mean = sum(each.right for each in told[1:]) / (len(told) - 1) / answers
        others_low = wilson(mean, answers)[0]
    return Confirmation(len(texts), answers, told[0], *ends, tuple(told[1:]), others_low)


def other_groups(made: Retrieval, seed: int) -> Iterator[tuple[Head, ...]]:
    """Groups of as many heads that are not named: of the layers from the first named one on, if they suffice.

    What lies below makes what is looked at, as a model without it shows: it is no fair control.
    """
    every = [made.head(place) for place in made.ranking]
    others, count = sorted({*every} - {*made.named}), len(made.named)
    first = min(layer for layer, _ in made.named)
    above = [head for head in others if head[0] >= first]
    pool = above if len(above) >= count else others
    if len(pool) < count:
        return
    draw, found = random.Random(seed), dict[tuple[Head, ...], None]()
    for _ in range(20 * GROUPS):
        found[tuple(sorted(draw.sample(pool, count)))] = None
        if len(found) == GROUPS:
            break
    yield from found


class _Without:
    """Answers without groups of heads: of the first text by whole experiments, of others in one batch."""

    def __init__(self, chosen: Chosen, groups: Sequence[Sequence[Head]]) -> None:
        zeros, layers = replacing.zeros().what, sorted({layer for group in groups for layer, _ in group})
        self.variants = [tuple(Change(*head, zeros) for head in group) for group in groups]
        self.selection = Selection(
            kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route, layers=layers
        )
        self.others: Others | None = None

    def right(self, one: Asked) -> tuple[bool, list[bool]]:
        reading, told = one.answers.reading, one.answers.answered
        module, inputs, name = reading.model.module, reading.inputs, reading.model.name
        asked = written_at(told.rows, len(one.answers.tokens), told.ids, reading.model.spell).asked
        with if_it_runs(module, inputs, name), fused_where_long(reading):
            found = None if self.others is None else self.others.scores(inputs, asked)
            if found is None:
                first = experiments_on(module, inputs, self.selection, asked)
                outcomes = first.run(self.variants)
                self.others = self.others or Others(first, self.variants)
                found = torch.cat([first.untouched, *(each.scores for each in outcomes)])
        whole, *without = (scores.argmax(-1).tolist() == list(told.ids) for scores in found)
        return whole, without
