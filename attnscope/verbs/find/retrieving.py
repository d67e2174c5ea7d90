"""Retrieval heads: which heads look at a planted fact where the answer is written, and ablation of them.

Every text has two facts, and its question asks for one: a head that looks at the other one as often looks at
facts, and retrieves none (after Wu et al. 2024). The named heads are then ablated on texts with other facts.

One run of each text gives the model's answer and the attention rows that write it. For each length the texts
with the first and the last fact are certified in that run, in full; whether changed head outputs reach the
model's output is tried on a fact and its question alone. In a text too long to hold all pairs only some rows
are certified, in a separate run that tries this as well.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, exp, log
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope import incoming
from attnscope.analysis.answers import replacing
from attnscope.analysis.answers.question import LogChances, written_at
from attnscope.analysis.controls import wilson
from attnscope.analysis.rows import AnyRows, Layer, Sample, rows_of
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.intervening.changes import Change
from attnscope.capture.intervening.experiments import Others, experiments_on
from attnscope.capture.long.run import sample_rows
from attnscope.capture.returned import Returned
from attnscope.capture.running import without_cache
from attnscope.capture.weights import End, OneText, Source, Weights
from attnscope.errors import InputError
from attnscope.model.inputs.text import limit_of
from attnscope.model.loading.config import tokenizer_for
from attnscope.model.loading.load import Plan
from attnscope.reference import exact, place
from attnscope.results import Provenance, Verdict
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.prompts import Field
from attnscope.session.questions.passages import Answers, answered, attention_behind
from attnscope.session.questions.rows import check_whole_fits, fused_where_long, may_read_rows, rows_in
from attnscope.session.reading import Reading, complete, encode_inputs
from attnscope.session.request import Inputs
from attnscope.verbs.find.needles import Fact, Planted, bundled_facts, bundled_text, planted
from attnscope.verbs.find.question import RETRIEVAL, Retrieve
from attnscope.verbs.find.result import Confirmation, Head, Masked, Needle, Retrieval
from attnscope.vocabulary import Kind, Route

ACTS = "a fact and its question alone"
_EVERY = 4  # every 4th sampled row is checked for faults first


@dataclass(frozen=True, eq=False)
class Asked:
    """A planted text as encoded for the model, its answer, and the token positions of both facts."""

    planted: Planted
    answers: Answers
    at: tuple[int, ...]
    other_at: tuple[int, ...]

    def needle(self, chances: LogChances) -> Needle:
        """The fact, the probability of its answer under `chances`, and whether it is the likeliest answer."""
        told, each = self.answers.answered, self.planted
        right = chances.argmax(-1).tolist() == list(told.ids)
        probability = exp(float(chances[range(len(told.ids)), list(told.ids)].sum()))
        return Needle(
            each.fact.needle, each.fact.question, each.fact.answer, each.other.needle, each.length,
            told.length, each.depth, probability, right,
        )  # fmt: skip

    def looks(self, rows: Float[np.ndarray, "head row key"]) -> Float[np.ndarray, "4 head"]:
        """Per head, mean over answer rows: is the strongest key in the fact, in the other; weight on both."""
        given = np.nan_to_num(rows)
        strongest = given.argmax(-1)
        inside = [np.isin(strongest, each).mean(-1) for each in (self.at, self.other_at)]
        return np.array([*inside, *(given[..., each].sum(-1).mean(-1) for each in (self.at, self.other_at))])


def size_by(reading: Reading) -> Callable[[str], int]:
    """A function that counts the tokens of a text, without special tokens."""
    return lambda text: len(reading.model.tokenizer(text, add_special_tokens=False)["input_ids"])


def read_planted(reading: Reading, chosen: Chosen, each: Planted) -> Asked:
    """Encode a planted text and locate its facts; `InputError` where the tokenizer gives no offsets."""
    opened = Opened(reading.model, reading.task, chosen)
    words = {"fact": (each.fact.needle, each.at), "other": (each.other.needle, each.other_at)}
    fields = {name: Field(text, (place,)) for name, (text, place) in words.items()}
    inputs = Inputs(each.text, fields=fields, answer=each.fact.answer)
    one = complete(encode_inputs(opened, inputs, Quiet()), chosen)
    stand = {field.name: tuple(field.positions) for field in one.encoded.tokens.fields}
    if len(stand) < len(fields):
        raise InputError(f"{reading.model.name}: its tokenizer does not say where in the text its tokens are")
    return Asked(each, answered(one, each.fact.answer, whole=True), stand["fact"], stand["other"])


def sampled(texts: Sequence[Planted]) -> tuple[int, ...]:
    """Indices of the texts to certify: for each length those with the shallowest and the deepest fact."""
    of_length = dict[int, list[int]]()
    for number, each in enumerate(texts):
        of_length.setdefault(each.length, []).append(number)
    ends = (
        end(numbers, key=lambda number: texts[number].depth)
        for numbers in of_length.values()
        for end in (min, max)
    )
    return tuple(sorted({*ends}))


class _Rows(Weights):
    """Reads weights together with the attention call that made them, for certification."""

    def _handed(self, source: Source, weights: Tensor, call: AttentionCall | None) -> Any:
        return weights, call


class Looks:
    """Measures where the chosen heads look in each planted text, and certifies the sampled ones."""

    provenance: Provenance
    tower: str
    acts = ""  # the only input on which effects of head outputs were tried; empty: every certified text

    def __init__(self, reading: Reading, chosen: Chosen) -> None:
        self.reading, self.chosen = reading, chosen
        self._weights = _Rows(reading.model.module, chosen.selection(heads=chosen.heads), chosen.block)
        self._sample = Sample(chosen.layers, chosen.heads, chosen.block)
        self._returned = False
        self._tried: dict[int, AttentionCall] = {}
        self._verdicts = Counter[Verdict]()

    @property
    def certified(self) -> dict[Verdict, int]:
        """Number of heads by verdict, over the sampled texts."""
        return dict(self._verdicts + self._sample.verdicts)

    @property
    def failed(self) -> tuple[Head, ...]:
        """Heads whose weights differ from the recomputed ones in some sampled text."""
        return tuple(sorted({*self._sample.failed}))

    def at(self, one: Asked, *, certify: bool) -> tuple[Needle, Float[np.ndarray, "layer 4 head"]]:
        """The model's answer in one text and where each head looks; `certify` recomputes the weights."""
        reading, chosen, told = one.answers.reading, self.chosen, one.answers.answered
        long, said = may_read_rows(reading, chosen), list[LogChances]()
        layers: list[AnyRows] = []

        def end(output: Any) -> None:
            said.append(told.chances_in(output))

        if long and not certify:
            layers = [*rows_in(reading, chosen, reading.inputs, told.rows, end)]
        elif long or self._returned:
            layers = self._told(*attention_behind(one.answers, chosen))
        else:
            check_whole_fits(reading, chosen, "retrieval")
            if certify and not self._tried and not self._try():
                return self.at(one, certify=True)
            rows = self._read(one, end, certify)
            return one.needle(said[0]), np.array([one.looks(each) for each in rows])
        with reading.running():
            chances = said[0] if said else told.chances()
        rows = [rows_of(layer, chosen.heads, told.rows) for layer in layers]
        return one.needle(chances), np.array([one.looks(each) for each in rows])

    def _told(
        self, attention: Capture | Returned, layers: Sequence[Layer], verdicts: Mapping[Verdict, int]
    ) -> list[AnyRows]:
        self._verdicts.update(verdicts)
        self.provenance, self.tower = attention.provenance.of_no_text, attention.tower
        return [*layers]

    def _try(self) -> bool:
        attention, chosen = self.reading.attention(self.chosen), self.chosen
        if isinstance(attention, Returned):
            self._returned = True
            return False
        attention.check_in_place("what heads look at is told by facts")
        self._tried = {layer: attention.call(layer, block=chosen.block) for layer in chosen.layers}
        self.provenance, self.tower = attention.provenance.of_no_text, attention.tower
        self.acts = ACTS
        return True

    def _read(self, one: Asked, end: End, certify: bool) -> list[Float[np.ndarray, "head row key"]]:
        reading, chosen, queries = one.answers.reading, self.chosen, list(one.answers.answered.rows)
        read, keys = reading.tokens_of(chosen.kind), reading.encoded.tokens
        keys = keys if chosen.kind is Kind.CROSS else read
        text = OneText(0, read, self._tried, chosen.heads, keys) if certify else None
        few = sorted({*queries, *sample_rows(len(read), len(keys)).tolist()[::_EVERY]})

        def make(layer: int, passed: tuple[Tensor, AttentionCall | None]) -> Tensor:
            weights, call = passed[0][0].detach(), passed[1]
            if call is not None:
                where = place(weights.device)
                self._sample.certify(call.at(where), weights.to(where), few)
            return exact(weights[:, queries]).cpu()

        inputs = without_cache(reading.model.module, reading.inputs)
        with reading.running():
            rows = self._weights.read(inputs, make, text, end)
        return [rows[layer].numpy() for layer in chosen.layers]


GROUPS, TRIED = 10, 6
_KEYS = "needle", "question", "answer"


def first(asked: Retrieve) -> Inputs:
    """Inputs with which the model is opened: one fact and its question, without filler text."""
    fact = (facts_of(asked.facts) or bundled_facts(1, asked.seed))[0]
    return Inputs(f"{fact.needle} {fact.question}", answer=fact.answer)


def texts_of(asked: Retrieve, again: bool, size: Any, goes_on: bool) -> list[Planted]:
    """The planted texts that score heads, or with `again` those of other facts for the ablation.

    Bundled facts are asked for by a question, or with `goes_on` by a sentence that the answer completes.
    """
    seed, hay = 2 * asked.seed + again, asked.text or bundled_text()
    facts = facts_of(asked.facts) or bundled_facts(asked.needles, seed, goes_on)
    return planted(facts, hay, asked.counts, asked.needles, seed, size)


def _tried(asked: Retrieve, goes_on: bool, size: Any) -> list[Planted]:
    """`TRIED` other texts of the shortest length, to choose between questions and sentences to complete."""
    seed, hay = -1 - asked.seed, asked.text or bundled_text()
    return planted(bundled_facts(TRIED, seed, goes_on), hay, (min(asked.counts),), TRIED, seed, size)


def facts_of(given: str | Path | Sequence[Fact] | None) -> tuple[Fact, ...]:
    """The given facts, or those of a file; empty where bundled facts are to be used."""
    return facts_in(Path(given)) if isinstance(given, str | Path) else tuple(given or ())


def facts_in(file: Path) -> tuple[Fact, ...]:
    """Read facts from a JSON Lines file; `InputError` names the line that is not a fact."""
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


def check_retrieving(planned: Plan, chosen: Chosen, asked: Retrieve, code: bool) -> None:
    """Raise `InputError` for attention that writes no answer, or texts too long, before weights load."""
    _check_kind(chosen, planned.writes)
    tokenizer = tokenizer_for(planned.model_class, planned.checkpoint.words, code, True)
    if tokenizer is not None:
        _check_lengths(asked.counts, limit_of(tokenizer, planned.skeleton), planned.name)


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


def retrieve(reading: Reading, chosen: Chosen, asked: Retrieve) -> Retrieval:
    """Score the chosen heads on all planted texts; ablate the named ones on texts with other facts.

    Raises `InputError` for models that write no answer, and for texts longer than the model reads.
    """
    _check_kind(chosen, reading.model.writes)
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: no head can be taken away")
    reading = replace(reading, model=reading.model.settled())
    model, listener = reading.model, reading.listener
    if model.tokenizer is None:
        raise InputError("facts are put into a text: give a model with its tokenizer")
    _check_lengths(asked.counts, model.limit(), model.name)
    goes_on, notes = _as_answered(reading, chosen, asked)
    seen, needles, looks = dict[int, Any](), dict[int, Needle](), Looks(reading, chosen)
    texts = texts_of(asked, False, size_by(reading), goes_on)
    sample = sampled(texts)
    for done, number in enumerate(sorted(range(len(texts)), key=lambda number: number not in sample)):
        with listener.working(f"fact {done + 1} of {len(texts)}"):
            one = read_planted(reading, chosen, texts[number])
            needles[number], seen[number] = looks.at(one, certify=number in sample)
    asks, places = (tuple(by_number[i] for i in range(len(texts))) for by_number in (needles, seen))
    first, first_other, weights, weights_other = np.moveaxis(np.array(places), (0, 1, 2, 3), (3, 1, 0, 2))
    right = [i for i, each in enumerate(asks) if each.right]
    low, high, chance = certainty(first[..., right], first_other[..., right])
    how = f"{'facts of the file' if asked.facts else 'bundled facts'} in "
    how += ("the text" if asked.text else "a bundled text") + (
        ", as sentences to go on with" if goes_on else ""
    )
    made = Retrieval(
        asks, chosen.kind, chosen.layers, chosen.heads, first, first_other, weights, weights_other,
        low, high, chance, None, how, looks.certified, looks.provenance, looks.tower,
        asked.seed, notes=notes, sampled=sample, failed=looks.failed, acts=looks.acts,
    )  # fmt: skip
    if not made.named:
        return made
    return replace(made, confirmation=confirmed(made, reading, chosen, asked, goes_on))


def _as_answered(reading: Reading, chosen: Chosen, asked: Retrieve) -> tuple[bool, tuple[str, ...]]:
    """Whether sentences to complete get more right answers than questions, and a note with both counts.

    Where both counts are equal, the higher likelihood of the right answers decides.
    """
    if asked.facts:
        return False, ()
    size, found = size_by(reading), list[tuple[int, float]]()
    for goes_on in (False, True):
        with reading.listener.working("trying how the model is to be asked"):
            needles = [_alone(read_planted(reading, chosen, each)) for each in _tried(asked, goes_on, size)]
        likely = sum(log(max(each.probability, sys.float_info.min)) for each in needles)
        found.append((sum(each.right for each in needles), likely))
        if found[0][0] == TRIED:
            return False, ()
    (questions, _), (sentences, _) = found
    others = (
        f"of {TRIED} other facts it answers {sentences} as sentences to go on with, {questions} as questions"
    )
    return found[1] > found[0], (others,)


def _alone(one: Asked) -> Needle:
    reading = one.answers.reading
    with reading.running(), fused_where_long(reading):
        return one.needle(one.answers.answered.chances())


def certainty(
    first: Float[np.ndarray, "layer head needle"], other: Float[np.ndarray, "layer head needle"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wilson 95 % bounds of each score, and the sign test p of looks at the fact against the other fact."""
    count, shape = first.shape[-1], first.shape[:2]
    low, high, chance = np.full((3, *shape), np.nan) if not count else np.empty((3, *shape))
    for at in np.ndindex(shape) if count else ():
        low[at], high[at] = wilson(float(first[at].mean()), count)
        more, less = int((first[at] > other[at]).sum()), int((first[at] < other[at]).sum())
        both = more + less
        chance[at] = sum(comb(both, k) for k in range(more, both + 1)) / 2**both
    return low, high, chance


def confirmed(
    made: Retrieval, reading: Reading, chosen: Chosen, asked: Retrieve, goes_on: bool
) -> Confirmation:
    """Right answers on other facts: with all heads, without the named ones, without control groups."""
    groups = (made.named, *other_groups(made, asked.seed))
    answers = 0
    left = np.zeros(len(groups), dtype=int)
    texts, masked = texts_of(asked, True, size_by(reading), goes_on), _Without(chosen, groups)
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
    """Up to `GROUPS` random control groups of unnamed heads, each as large as the named group.

    They come from the first named layer or above, if these suffice: lower layers make what heads look at.
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
    """Zero-ablates groups of heads: by full experiments in the first text, in one batch in others."""

    def __init__(self, chosen: Chosen, groups: Sequence[Sequence[Head]]) -> None:
        zeros, layers = replacing.zeros().what, sorted({layer for group in groups for layer, _ in group})
        self.variants = [tuple(Change(*head, zeros) for head in group) for group in groups]
        self.selection = chosen.selection(layers)
        self.others: Others | None = None

    def right(self, one: Asked) -> tuple[bool, list[bool]]:
        reading, told = one.answers.reading, one.answers.answered
        module, inputs = reading.model.module, reading.inputs
        asked = written_at(told.rows, len(one.answers.tokens), told.ids, reading.model.spell).asked
        with reading.running(), fused_where_long(reading):
            found = None if self.others is None else self.others.scores(inputs, asked)
            if found is None:
                first = experiments_on(module, inputs, self.selection, asked)
                outcomes = first.run(self.variants)
                self.others = self.others or Others(first, self.variants)
                found = torch.cat([first.untouched, *(each.scores for each in outcomes)])
        whole, *without = (scores.argmax(-1).tolist() == list(told.ids) for scores in found)
        return whole, without
