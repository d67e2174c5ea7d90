"""What a tuning changed: every head of two models of one shape, over the same tokens of many texts."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import numpy as np
import torch

from attnscope.analysis.claims.comparison.drift import (
    BROKEN,
    check_numbers,
    factors,
    intervals,
    moved,
    written,
)
from attnscope.analysis.claims.relations.answers import Sample
from attnscope.attention import Capture
from attnscope.capture.intervening.given_layers import HeadReader, Seen
from attnscope.errors import AttnscopeError, CertificateError, InputError, listed
from attnscope.model.anatomy.placed import map_of
from attnscope.results import Drift
from attnscope.results.base.origin import tallied
from attnscope.results.claims.prompts import Prompt
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import Opened, open_model
from attnscope.session.questions.claims.putting_back import asked_of, put_back
from attnscope.session.questions.claims.rows import check_whole_fits
from attnscope.session.reading import Reading, encode_inputs, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.selection import check_seed
from attnscope.session.wanted import Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import Purpose, Route

HEADS, TEXTS = 5, 8  # that are put back, and in how many texts
BATCH = "a batch of two"
_UNPARTED = "what a head does by itself is not told from what it hears: its layers stand in no list"
_UNWRITTEN = "what heads write is not compared: no one matrix takes their outputs on"


@dataclass(frozen=True)
class DriftQuestion:
    """The texts by their lines, the file they are of, and what no head may move beyond.

    `inputs` say how each of them is read, `seed` draws the heads that others are held against.
    """

    texts: tuple[Prompt, ...]
    file: str = ""
    limit: float | None = None
    inputs: Inputs = field(default_factory=Inputs)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.texts:
            raise InputError("no text: attention is compared over one text at least")
        if self.limit is not None and not 0 <= self.limit <= 1:
            raise InputError(f"--fail-above {self.limit:g}: how far a head moves lies between 0 and 1")
        check_seed(self.seed)

    def inputs_of(self, text: Prompt) -> Inputs:
        return replace(self.inputs, text=text.text)

    def called(self, text: Prompt) -> str:
        return f"{self.file}:{text.line}" if self.file else f"text {text.line}"


def compare_tuned(
    requests: tuple[ModelRequest, ModelRequest], asked: DriftQuestion, wanted: Wanted, listener: Listener
) -> Drift:
    """Both models opened, then compared; another shape is told before the second one's weights are read."""
    first, purpose = asked.inputs_of(asked.texts[0]), Purpose.ANSWER_OR_VECTOR
    before = open_model(requests[0], first, wanted, purpose, listener)

    def check(planned: Any, chosen: Chosen) -> None:
        _check_shapes(before, Opened(planned, None, chosen))

    return drift_of(before, open_model(requests[1], first, wanted, purpose, listener, check), asked, listener)


def drift_of(before: Opened, after: Opened, asked: DriftQuestion, listener: Listener) -> Drift:
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
            pairs = [readings[i] for i in places]
            back = put_back(pairs, chosen, named, tuple(places), asked.seed)
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


Readings = tuple[Reading, Reading]


class _Comparing:
    def __init__(
        self,
        before: Opened,
        after: Opened,
        chosen: tuple[Chosen, Chosen],
        asked: DriftQuestion,
        listener: Listener,
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
        readings = [self._read(text) for text in self.asked.texts]
        with self.listener.working("certifying the first text"):
            old, new = (each.capture(which, projections=True) for each, which in self._pairs(readings[0]))
        self.factors = factors(old, new)
        with self.listener.working(f"reading {len(readings)} texts under both models"):
            numbers = [self._of_text(*each) for each in zip(self.asked.texts, readings, strict=True)]
        values = {name: np.stack([getattr(each, name) for each in numbers]) for name in vars(numbers[0])}
        if self.unanswered:
            values["answers"] = values["answers_floor"] = np.full(len(readings), nan)
        low, high = intervals(values["moved"])
        chosen = self.chosen[0]
        made = Drift(
            names=(self.before.model.name, self.after.model.name),
            file=self.asked.file,
            texts=self.asked.texts,
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
            before=old.provenance.of_no_text,
            after=new.provenance.of_no_text,
            tower=old.tower,
            limit=self.asked.limit,
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

    def _of_text(self, text: Prompt, readings: Readings) -> _Numbers:
        with self._naming(text):
            return self._numbers(readings)

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
