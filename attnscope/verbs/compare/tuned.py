"""What a tuning changed: every head of two models of one shape, over the same tokens of many texts."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.answers.experiment import head_counts, others_drawn
from attnscope.analysis.answers.question import word_at
from attnscope.analysis.prediction import masks_of, tagged_places
from attnscope.analysis.rows import Sample
from attnscope.attention import Capture
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows, Change, Logits, Put, Variant
from attnscope.capture.intervening.experiments import experiments_on, heard
from attnscope.capture.intervening.given_layers import HeadReader, Seen
from attnscope.errors import AttnscopeError, CertificateError, InputError, listed
from attnscope.model.anatomy.placed import map_of
from attnscope.results.base.origin import tallied
from attnscope.results.claims.effect import Asks
from attnscope.results.claims.prompts import Prompt
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import Opened, Opening
from attnscope.session.question import Answer
from attnscope.session.questions.answers import question_of, tags
from attnscope.session.questions.rows import check_whole_fits
from attnscope.session.reading import Reading, encode_inputs, read_inputs
from attnscope.session.request import ModelRequest, digests
from attnscope.tokens import Tokens
from attnscope.verbs.compare.drift import (
    BROKEN,
    check_numbers,
    distances,
    factors,
    intervals,
    moved,
    written,
)
from attnscope.verbs.compare.drift_result import Drift, PutBack
from attnscope.verbs.compare.question import Tuned
from attnscope.vocabulary import Purpose, Route

HEADS, TEXTS = 5, 8  # that are put back, and in how many texts
OTHERS = 3  # heads of each layer, drawn by lot
BATCH = "a batch of two"
_UNPARTED = "what a head does by itself is not told from what it hears: its layers stand in no list"
_UNWRITTEN = "what heads write is not compared: no one matrix takes their outputs on"
Head = tuple[int, int]
Readings = tuple[Reading, Reading]


def compare_tuned(request: ModelRequest, opening: Opening, asked: Tuned, listener: Listener) -> Answer[Drift]:
    """Both models opened, then compared; another shape is told before the second one's weights are read."""
    first, how = asked.inputs_of(asked.prompts[0]), (asked.wanted, Purpose.ANSWER_OR_VECTOR, listener)
    before = opening(request, first, *how)

    def check(planned: Any, chosen: Chosen) -> None:
        _check_shapes(before, Opened(planned, None, chosen))

    after = opening(request.of_other(str(asked.tuned)), first, *how, check)
    drift = drift_of(before, after, asked, listener)
    if not (places := drift.exceeding):
        return Answer(drift)
    moved = f"{drift.name(places[0])} moved by {drift.mean[places[0]]:.3g}"
    return Answer(drift, exceeded=f"{moved}: more than --fail-above {asked.fail_above:g}")


def drift_of(before: Opened, after: Opened, asked: Tuned, listener: Listener) -> Drift:
    """How far every chosen head moved from one open model to the other; `InputError` where shapes differ."""
    chosen = _check_shapes(before, after)
    comparing = _Comparing(before, after, chosen, asked, listener)
    made, readings = comparing.result()
    heads = made.ranking[:HEADS]
    if not made.answers_by:
        return made
    if not made.mean[heads[0]] > 0:
        return replace(made, unanswered="no head moved")
    places = np.argsort(-made.by_text, kind="stable")[:TEXTS].tolist()
    named = tuple((made.layers[i], made.heads[j]) for i, j in heads)
    try:
        with listener.working("putting old heads back"):
            back = put_back({i: readings[i] for i in places}, chosen, named, asked.seed)
            return replace(made, put_back=back)
    except InputError as error:
        return replace(made, unanswered=str(error))


def _check_shapes(before: Opened, after: Opened) -> tuple[Chosen, Chosen]:
    a, b = before.chosen, after.chosen
    assert a is not None, "something was wanted"
    assert b is not None, "and so it was of the other"
    if (a.kind, a.layers, a.heads) != (b.kind, b.layers, b.heads):
        first, second = (
            f"{each.kind} layers {listed(each.layers)} and heads {listed(each.heads)}" for each in (a, b)
        )
        raise InputError(
            f"{before.model.name} has {first}, {after.model.name} {second}: what a tuning changed is asked "
            "of models of one shape"
        )
    if Route.RETURNED in (a.route, b.route):
        raise InputError("--route returned has weights alone: here queries and keys are needed")
    return a, b


@dataclass(frozen=True, eq=False)
class _Numbers:
    moved: np.ndarray
    own: np.ndarray
    written: np.ndarray
    floor: np.ndarray
    answers: float = nan
    answers_floor: float = nan


class _Comparing:
    def __init__(
        self, before: Opened, after: Opened, chosen: tuple[Chosen, Chosen], asked: Tuned, listener: Listener
    ) -> None:
        self.before, self.after, self.asked, self.listener = before, after, asked, listener
        self.chosen = chosen
        old, new = (each.selection(heads=each.heads) for each in chosen)
        self.old = HeadReader(before.model.module, old)
        self.new = HeadReader(after.model.module, new)
        rounded = _in_other_precision(before.model.module)
        self.floor_by = BATCH if rounded is None else _precision(rounded)
        self.again = HeadReader(before.model.module if rounded is None else rounded, old)
        self.answers_by, self.unanswered = "", ""

    def result(self) -> tuple[Drift, list[Readings]]:
        readings = [self._read(text) for text in self.asked.prompts]
        with self.listener.working("certifying the first text"):
            old, new = (each.capture(which, projections=True) for each, which in self._pairs(readings[0]))
        self.factors = factors(old, new)
        with self.listener.working(f"reading {len(readings)} texts under both models"):
            numbers = []
            for text, both in zip(self.asked.prompts, readings, strict=True):
                with self._naming(text):
                    numbers.append(self._numbers(both))
        values = {name: np.stack([getattr(each, name) for each in numbers]) for name in vars(numbers[0])}
        if self.unanswered:
            values["answers"] = values["answers_floor"] = np.full(len(readings), nan)
        low, high = intervals(values["moved"])
        read = self.asked.read_again
        chosen = self.chosen[0]
        made = Drift(
            names=(self.before.model.name, self.after.model.name),
            file=self.asked.file,
            texts=self.asked.prompts,
            kind=chosen.kind,
            layers=chosen.layers,
            heads=chosen.heads,
            **values,
            floor_by=self.floor_by,
            low=low,
            high=high,
            answers_by="" if self.unanswered else self.answers_by,
            put_back=None,
            unanswered=self.unanswered,
            certified=self._certified(readings[0], (old, new)),
            before=replace(old.provenance.of_no_text, read=read, files=digests(read)),
            after=new.provenance.of_no_text,
            tower=old.tower,
            limit=self.asked.fail_above,
            notes=self._notes(values),
        )
        return made, readings

    def _pairs(self, readings: Readings) -> list[tuple[Reading, Chosen]]:
        return list(zip(readings, self.chosen, strict=True))

    @contextmanager
    def _naming(self, text: Prompt) -> Iterator[None]:
        try:
            yield
        except AttnscopeError as error:
            raise type(error)(f"{self.asked.called(text)}: {error}") from error

    def _read(self, text: Prompt) -> Readings:
        inputs = self.asked.inputs_of(text)
        with self._naming(text):
            old = read_inputs(self.before, inputs, self.listener)
            new = encode_inputs(self.after, inputs, Quiet())  # the same tokens, of which all was said
            _check_tokens(old.encoded.tokens, new.encoded.tokens)
            check_whole_fits(old, self.chosen[0], "this question")
        return old, replace(new, target=old.target)

    def _certified(self, readings: Readings, captures: tuple[Capture, Capture]) -> dict[Any, int]:
        chosen = self.chosen[0]
        sample = Sample(chosen.layers, chosen.heads, 0)
        for reading, reader, captured in zip(readings, (self.old, self.new), captures, strict=True):
            counted = {layer: each.weights.cpu() for layer, each in reader.read(reading.inputs).items()}
            sample.add(captured, counted, counted)
        return tallied(sample.verdicts.elements())

    def _numbers(self, readings: Readings) -> _Numbers:
        (old, new), heads = readings, self.chosen[0].heads
        a, b = (f"model {letter} ({each.model.name})" for letter, each in zip("AB", readings, strict=True))
        with old.running():
            before = self.old.read(old.inputs)
            again = self._once_more(old.inputs)
        with new.running():
            after = self.new.read(new.inputs)
            check_numbers(before, after, (a, b), heads)
            check_numbers(before, again, (a, f"{a} in {self.floor_by}"), heads)
            answers = self._answers(readings, (a, b, f"{a} in {self.floor_by}"))
            own = self.new.read_as(new.inputs, self.old)
        change, floor = moved(before, after), moved(before, again)
        none = np.full(change.shape, np.nan)
        wrote = none
        if own is not None and self.factors is not None:
            wrote = written(before, own, self.factors, heads)
        return _Numbers(change, none if own is None else moved(before, own), wrote, floor, *answers)

    def _answers(self, readings: Readings, called: tuple[str, str, str]) -> tuple[float, ...]:
        if self.unanswered:
            return ()
        try:
            asked = asked_of(*readings)
            self.answers_by = asked.measured
            scores = [asked.rows.of(each.returned) for each in (self.old, self.new, self.again)]
            for name, each in zip(called, scores, strict=True):
                if bool(each.isnan().any()):
                    raise CertificateError(f"{name} gives no numbers as its answer: {BROKEN}")
            return tuple(asked.distances(*scores))
        except InputError as error:
            self.unanswered = str(error)
            return ()

    def _once_more(self, inputs: dict[str, Any]) -> Seen:
        if self.floor_by == BATCH:
            return self.again.read({name: torch.cat([value, value]) for name, value in inputs.items()})
        return self.again.read(inputs)

    def _notes(self, values: dict[str, np.ndarray]) -> tuple[str, ...]:
        if np.isnan(values["own"]).all():
            return (_UNPARTED,)
        return (_UNWRITTEN,) if np.isnan(values["written"]).all() else ()


def _in_other_precision(module: Any) -> Any | None:
    kinds = {each.dtype for each in module.parameters()}
    if map_of(module) or len(kinds) != 1 or not next(iter(kinds)).is_floating_point:
        return None
    return copy.deepcopy(module).to(torch.bfloat16 if kinds.pop() is torch.float32 else torch.float32)


def _precision(module: Any) -> str:
    return str(next(module.parameters()).dtype).removeprefix("torch.")


def _check_tokens(a: Tokens, b: Tokens) -> None:
    if len(a) != len(b):
        raise InputError(f"the models cut it into {len(a)} and {len(b)} tokens: they must read the same")
    for place, (first, second) in enumerate(zip(a.items, b.items, strict=True)):
        if first.id != second.id:
            raise InputError(
                f"the models read other tokens, the first at position {place}: '{first.name}' and "
                f"'{second.name}'"
            )


@dataclass(frozen=True)
class Asked:
    """Where the answer of two models stands, which is a vector or probabilities."""

    rows: AnswerRows
    vectors: bool

    @property
    def measured(self) -> str:
        return "1 less the cosine of both vectors" if self.vectors else "divergence in nats"

    def distances(self, before: Logits, *others: Float[Tensor, "entry row _"]) -> list[float]:
        """How far each of the others lies from the answer before; `InputError` where it has other choices."""
        for each in others:
            if each.shape[1:] != before.shape[1:]:
                counts = f"{before.shape[-1]:,} and {each.shape[-1]:,}"
                raise InputError(f"the models choose their answers among {counts}: they can't be compared")
        return distances(before, others, self.vectors)


def put_back(
    readings: Mapping[int, Readings], chosen: tuple[Chosen, Chosen], heads: tuple[Head, ...], seed: int
) -> PutBack:
    """Each of the heads put back by itself in every text, by its place what both models read."""
    tuned, alone, others, every = zip(
        *(_in_one(*both, chosen, heads, seed) for both in readings.values()), strict=True
    )
    return PutBack(
        (*readings,), heads, np.array(tuned), np.array(alone).T, np.array(others).T, every=np.array(every)
    )


def _in_one(
    old: Reading, new: Reading, chosen: tuple[Chosen, Chosen], heads: Sequence[Head], seed: int
) -> tuple[float, list[float], list[float], float]:
    """How far the tuned answer lies, with each of the heads put back, with others, and with all of them."""
    asked = asked_of(old, new)
    with new.running():
        before = heard(old.model.module, old.inputs, _whole(chosen[0]), asked.rows)
        after = experiments_on(new.model.module, new.inputs, _whole(chosen[1]), asked.rows)
        counts = head_counts(after)
        drawn = _few(others_drawn(heads, counts, seed))
        every = [(layer, head) for layer, count in counts.items() for head in range(count)]
        put = Put(before.answers)
        groups = [*([head] for head in (*heads, *drawn)), every]
        variants: list[Variant] = [tuple(Change(*head, put) for head in group) for group in groups]
        outcomes = after.run(variants)
    tuned, *far = asked.distances(before.untouched, after.untouched, *(each.scores for each in outcomes))
    others = dict(zip(drawn, far[len(heads) :], strict=False))
    beside = [[value for (layer, _), value in others.items() if layer == mine] for mine, _ in heads]
    means = [float(np.mean(each)) if each else nan for each in beside]
    return tuned, far[: len(heads)], means, far[-1]


def _few(drawn: Sequence[Head]) -> list[Head]:
    layers = dict.fromkeys(layer for layer, _ in drawn)
    return [head for layer in layers for head in [each for each in drawn if each[0] == layer][:OTHERS]]


def _whole(chosen: Chosen) -> Selection:
    return Selection(kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route)


def asked_of(old: Reading, new: Reading) -> Asked:
    """Where the answer of both stands; `InputError` where one of them has none, or they answer otherwise."""
    (asks, rows), (other, _) = map(_asked, (old, new))
    if asks is not other:
        raise InputError(
            f"{old.model.name} and {new.model.name} are asked for different answers ({asks} and {other})"
        )
    return Asked(rows, asks is Asks.VECTOR)


def _asked(reading: Reading) -> tuple[Asks, AnswerRows]:
    """Of a text without a mask, and of a tagger, every token is asked for."""
    tokens = reading.encoded.tokens
    if tags(reading):
        asked = word_at(Asks.TAG, 0, len(tokens), None, str).asked
        return Asks.TAG, replace(asked, rows=tuple(tagged_places(tokens)))
    if reading.task == "masked" and not masks_of(tokens, reading.model.tokenizer.mask_token_id):
        asked = word_at(Asks.MASK, 0, len(tokens), None, reading.model.spell).asked
        return Asks.MASK, replace(asked, rows=tuple(range(len(tokens))))
    question = question_of(reading, None, vectors=True)
    return question.asks, question.asked
