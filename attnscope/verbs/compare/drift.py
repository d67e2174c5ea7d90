"""Compares a tuned model with its original: how far every head's attention moved, over many texts.

moved      half the sum of absolute differences of a query's two rows of weights, a sink one more key
written    |o' P' - o P| / |o P|      o what the head answers, P its part of the output projection
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.answers.experiment import head_counts, others_drawn
from attnscope.analysis.answers.question import log_chances, unit, word_at
from attnscope.analysis.controls import interval
from attnscope.analysis.prediction import masks_of, tagged_places
from attnscope.analysis.rows import Sample
from attnscope.attention import Capture
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows, Change, Logits, Put, Variant
from attnscope.capture.intervening.experiments import experiments_on, heard
from attnscope.capture.intervening.given_layers import HeadReader, Seen
from attnscope.errors import AttnscopeError, CertificateError, InputError, listed
from attnscope.model.anatomy.placed import map_of
from attnscope.reference import exact
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
from attnscope.session.request import Inputs, ModelRequest, digests
from attnscope.verbs.compare.question import Tuned
from attnscope.verbs.compare.texts_result import Drift, PutBack
from attnscope.vocabulary import Purpose, Route

HEADS, TEXTS = 5, 8  # that are put back, and in how many texts
OTHERS = 3  # heads of each layer, drawn by lot
BATCH = "a batch of two"
BROKEN = "broken weights, or too large for its precision"
ROUNDING = 1e-9  # of what is written: what adding it up leaves of two that are equal
_BY_VECTORS = "1 less the cosine of both vectors"
_UNPARTED = "what a head does by itself is not told from what it hears: its layers stand in no list"
_UNWRITTEN = "what heads write is not compared: no one matrix takes their outputs on"
Head = tuple[int, int]
Readings = tuple[Reading, Reading]
ByHead = Float[np.ndarray, "layer head"]
Factors = Mapping[int, Float[Tensor, "head size both"]]


def compare_tuned(request: ModelRequest, opening: Opening, asked: Tuned, listener: Listener) -> Answer[Drift]:
    """Opens both models and compares them; refuses another shape before the second one's weights load."""
    first = Inputs(asked.prompts[0].text, truncate=asked.truncate)
    how = first, asked.wanted, Purpose.ANSWER_OR_VECTOR, listener
    before = opening(request, *how)

    def check(planned: Any, chosen: Chosen) -> None:
        _check_shapes(before, Opened(planned, None, chosen))

    after = opening(request.of_other(str(asked.tuned)), *how, check)
    drift = drift_of(before, after, asked, listener)
    if not (places := drift.exceeding):
        return Answer(drift)
    moved = f"{drift.name(places[0])} moved by {drift.mean[places[0]]:.3g}"
    return Answer(drift, exceeded=f"{moved}: more than --fail-above {asked.fail_above:g}")


def drift_of(before: Opened, after: Opened, asked: Tuned, listener: Listener) -> Drift:
    """Compares two open models head by head, and puts heads back; `InputError` where shapes differ."""
    chosen = _check_shapes(before, after)
    made, readings = _Comparing(before, after, chosen, asked, listener).result()
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


class _Comparing:
    def __init__(
        self, before: Opened, after: Opened, chosen: tuple[Chosen, Chosen], asked: Tuned, listener: Listener
    ) -> None:
        self.before, self.after, self.asked, self.listener = before, after, asked, listener
        self.chosen = chosen
        old, new = (each.selection(heads=each.heads) for each in chosen)
        module = before.model.module
        self.old, self.new = HeadReader(module, old), HeadReader(after.model.module, new)
        rounded = _in_other_precision(module)
        self.floor_by = BATCH
        if rounded is not None:
            self.floor_by = str(next(rounded.parameters()).dtype).removeprefix("torch.")
        self.again = HeadReader(module if rounded is None else rounded, old)
        self.answers_by, self.unanswered = "", ""

    def result(self) -> tuple[Drift, list[Readings]]:
        readings, chosen = [self._read(text) for text in self.asked.prompts], self.chosen[0]
        sample = Sample(chosen.layers, chosen.heads, 0)
        with self.listener.working("certifying the first text"):
            old, new = (
                each.capture(which, projections=True)
                for each, which in zip(readings[0], self.chosen, strict=True)
            )
        self.factors = factors(old, new)
        with self.listener.working(f"reading {len(readings)} texts under both models"):
            numbers = []
            for text, both in zip(self.asked.prompts, readings, strict=True):
                with self._naming(text):
                    numbers.append(self._numbers(both))
        values = {name: np.stack([each[name] for each in numbers]) for name in numbers[0]}
        if self.unanswered:
            values["answers"] = values["answers_floor"] = np.full(len(readings), nan)
        for reading, reader, captured in zip(readings[0], (self.old, self.new), (old, new), strict=True):
            counted = {layer: each.weights.cpu() for layer, each in reader.read(reading.inputs).items()}
            sample.add(captured, counted, counted)
        unparted, unwritten = (bool(np.isnan(values[name]).all()) for name in ("own", "written"))
        low, high = intervals(values["moved"])
        read = self.asked.read_again
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
            certified=tallied(sample.verdicts.elements()),
            before=replace(old.provenance.of_no_text, read=read, files=digests(read)),
            after=new.provenance.of_no_text,
            tower=old.tower,
            limit=self.asked.fail_above,
            notes=(_UNPARTED,) if unparted else (_UNWRITTEN,) if unwritten else (),
        )
        return made, readings

    @contextmanager
    def _naming(self, text: Prompt) -> Iterator[None]:
        try:
            yield
        except AttnscopeError as error:
            where = f"{self.asked.file}:{text.line}" if self.asked.file else f"text {text.line}"
            raise type(error)(f"{where}: {error}") from error

    def _read(self, text: Prompt) -> Readings:
        inputs = Inputs(text.text, truncate=self.asked.truncate)
        with self._naming(text):
            old = read_inputs(self.before, inputs, self.listener)
            new = encode_inputs(self.after, inputs, Quiet())  # the same tokens, of which all was said
            a, b = (each.encoded.tokens for each in (old, new))
            if len(a) != len(b):
                raise InputError(
                    f"the models cut it into {len(a)} and {len(b)} tokens: they must read the same"
                )
            for place, (first, second) in enumerate(zip(a.items, b.items, strict=True)):
                if first.id != second.id:
                    raise InputError(
                        f"the models read other tokens, the first at position {place}: '{first.name}' and "
                        f"'{second.name}'"
                    )
            check_whole_fits(old, self.chosen[0], "this question")
        return old, replace(new, target=old.target)

    def _numbers(self, readings: Readings) -> dict[str, Any]:
        (old, new), heads = readings, self.chosen[0].heads
        a, b = (f"model {letter} ({each.model.name})" for letter, each in zip("AB", readings, strict=True))
        again_called = f"{a} in {self.floor_by}"
        with old.running():
            before, inputs = self.old.read(old.inputs), old.inputs
            if self.floor_by == BATCH:
                inputs = {name: torch.cat([value, value]) for name, value in inputs.items()}
            again = self.again.read(inputs)
        with new.running():
            after = self.new.read(new.inputs)
            check_numbers(before, after, (a, b), heads)
            check_numbers(before, again, (a, again_called), heads)
            answers = self._answers(readings, (a, b, again_called))
            own = self.new.read_as(new.inputs, self.old)
        change, floor = moved(before, after), moved(before, again)
        none = np.full(change.shape, np.nan)
        wrote = none
        if own is not None and self.factors is not None:
            wrote = written(before, own, self.factors, heads)
        by_itself = none if own is None else moved(before, own)
        numbers = {"moved": change, "own": by_itself, "written": wrote, "floor": floor}
        return numbers | dict(zip(("answers", "answers_floor"), answers, strict=True))

    def _answers(self, readings: Readings, called: tuple[str, str, str]) -> list[float]:
        if not self.unanswered:
            try:
                asked = asked_of(*readings)
                self.answers_by = _BY_VECTORS if asked.vectors else "divergence in nats"
                scores = [asked.rows.of(each.returned) for each in (self.old, self.new, self.again)]
                for name, each in zip(called, scores, strict=True):
                    if bool(each.isnan().any()):
                        raise CertificateError(f"{name} gives no numbers as its answer: {BROKEN}")
                return asked.distances(*scores)
            except InputError as error:
                self.unanswered = str(error)
        return [nan, nan]


def _in_other_precision(module: Any) -> Any | None:
    kinds = {each.dtype for each in module.parameters()}
    if map_of(module) or len(kinds) != 1 or not next(iter(kinds)).is_floating_point:
        return None
    return copy.deepcopy(module).to(torch.bfloat16 if kinds.pop() is torch.float32 else torch.float32)


@dataclass(frozen=True)
class Asked:
    """Rows of the outputs that hold the answer of both models: vectors or logits."""

    rows: AnswerRows
    vectors: bool

    def distances(self, before: Logits, *others: Float[Tensor, "entry row _"]) -> list[float]:
        """KL divergence of each answer from `before` in nats a row, or 1 less the cosine of vectors.

        `InputError` where the models have other choices, `CertificateError` where an answer is none.
        """
        for each in others:
            if each.shape[1:] != before.shape[1:]:
                counts = f"{before.shape[-1]:,} and {each.shape[-1]:,}"
                raise InputError(f"the models choose their answers among {counts}: they can't be compared")
        if self.vectors:
            old = unit(before[0])
            return [float((1 - (old * unit(each[0])).sum(-1)).clamp_min(0).mean()) for each in others]
        old = log_chances(before[0])
        share = old.exp()
        apart = (torch.where(share > 0, share * (old - log_chances(each[0])), 0.0) for each in others)
        return [float(each.sum(-1).clamp_min(0).mean()) for each in apart]


def put_back(
    readings: Mapping[int, Readings], chosen: tuple[Chosen, Chosen], heads: tuple[Head, ...], seed: int
) -> PutBack:
    """Puts each head's old output back by itself; `readings` holds both models' readings by text number."""
    tuned, alone, others, every = zip(
        *(_in_one(*both, chosen, heads, seed) for both in readings.values()), strict=True
    )
    return PutBack(
        (*readings,), heads, np.array(tuned), np.array(alone).T, np.array(others).T, every=np.array(every)
    )


def _in_one(
    old: Reading, new: Reading, chosen: tuple[Chosen, Chosen], heads: Sequence[Head], seed: int
) -> tuple[float, list[float], list[float], float]:
    """One text: distance of the tuned answer, with each head put back, with others (mean), with all heads."""
    asked = asked_of(old, new)
    first, second = (Selection(kind=each.kind, tower=each.tower.pattern, route=each.route) for each in chosen)
    with new.running():
        before = heard(old.model.module, old.inputs, first, asked.rows)
        after = experiments_on(new.model.module, new.inputs, second, asked.rows)
        counts = head_counts(after)
        by_layer: dict[int, list[Head]] = {}
        for head in others_drawn(heads, counts, seed):
            by_layer.setdefault(head[0], []).append(head)
        drawn = [head for each in by_layer.values() for head in each[:OTHERS]]
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


def asked_of(old: Reading, new: Reading) -> Asked:
    """The answer rows of both models; `InputError` where one has no answer, or they answer otherwise."""
    (asks, rows), (other, _) = map(_asked, (old, new))
    if asks is not other:
        raise InputError(
            f"{old.model.name} and {new.model.name} are asked for different answers ({asks} and {other})"
        )
    return Asked(rows, asks is Asks.VECTOR)


def _asked(reading: Reading) -> tuple[Asks, AnswerRows]:
    """Kind and rows of the answer; every token for a tagger, and for a masked model without a mask."""
    tokens = reading.encoded.tokens
    if tags(reading):
        asked = word_at(Asks.TAG, 0, len(tokens), None, str).asked
        return Asks.TAG, replace(asked, rows=tuple(tagged_places(tokens)))
    if reading.task == "masked" and not masks_of(tokens, reading.model.tokenizer.mask_token_id):
        asked = word_at(Asks.MASK, 0, len(tokens), None, reading.model.spell).asked
        return Asks.MASK, replace(asked, rows=tuple(range(len(tokens))))
    question = question_of(reading, None, vectors=True)
    return question.asks, question.asked


def moved(before: Seen, after: Seen) -> ByHead:
    """Total variation of each head's rows, mean over queries: the share of weight that moved, 0 to 1.

    Queries that have no key in both are left out; NaN where a row is NaN on one side only.
    """
    means = []
    for layer in before:
        a, b = (exact(each[layer].weights) for each in (before, after))
        seen = ~(_open(a) & _open(b))
        apart = (a - b).masked_fill(~seen[..., None], 0.0)
        sinks = apart.sum(-1).abs()
        sinks = sinks.where(sinks > 1e-5, 0.0)  # rows without a sink sum to 1 but for rounding
        rows = (apart.abs().sum(-1) + sinks) / 2
        means.append((rows.sum(-1) / seen.sum(-1).clamp_min(1)).cpu().numpy())
    return np.stack(means)


def _open(weights: Float[Tensor, "head query key"]) -> Bool[Tensor, "head query"]:
    return weights.isnan().any(-1)


def check_numbers(one: Seen, other: Seen, called: tuple[str, str], heads: Sequence[int]) -> None:
    """Raises `CertificateError` where a head of either run has weights or outputs that are not finite.

    Queries without any key in both runs are allowed, but not in all queries of a head.
    """
    for layer in one:
        both = one[layer], other[layer]
        none = _open(both[0].weights).cpu() & _open(both[1].weights).cpu()
        none &= ~none.all(-1, keepdim=True)
        for name, seen in zip(called, both, strict=True):
            numbers = (seen.weights.isfinite().all(-1) & seen.output.isfinite().all(-1)).cpu()
            broken = (~(none | numbers)).any(-1)
            if bool(broken.any()):
                head = heads[int(broken.nonzero()[0])]
                raise CertificateError(f"{name} gives no numbers in L{layer} H{head}: {BROKEN}")


def factors(before: Capture, after: Capture) -> Factors | None:
    """Triangular factors, by layer, that measure output differences in the hidden state; None if unknown.

    |o' P' - o P| is |(o', -o) R| where Q R is (P', P) transposed: R is as wide as two values.
    """
    found = {}
    for call in before.calls:
        old, new = call.projection, after.call(call.layer).projection
        if old is None or new is None or old.shape != new.shape:
            return None
        both = torch.cat([exact(new), exact(old)], dim=1)
        found[call.layer] = torch.linalg.qr(both.mT, mode="r").R
    return found


def written(before: Seen, after: Seen, of: Factors, heads: Sequence[int]) -> ByHead:
    """Change of what a head writes, over the size of what it wrote; infinite where that is zero."""
    rows = []
    for layer, own in before.items():
        triangle = of[layer][list(heads)]
        none = _open(exact(own.weights))[..., None]
        old, new = (exact(each.output).masked_fill(none, 0.0) for each in (own, after[layer]))
        triangle = triangle.mT.to(old.device)
        size = torch.cat([torch.zeros_like(old), old], dim=-1) @ triangle
        change = torch.cat([new, -old], dim=-1) @ triangle
        norms = [torch.linalg.vector_norm(each, dim=(-2, -1)) for each in (change, size)]
        share = (norms[0] / norms[1]).masked_fill(norms[0] == 0, 0.0)
        rows.append(share.where(~(share < ROUNDING), 0.0).cpu().numpy())
    return np.stack(rows)


def intervals(values: Float[np.ndarray, "text layer head"]) -> tuple[ByHead, ByHead]:
    """Ends of the 95 % interval of every head's mean over texts, clipped to 0 and 1."""
    low, high = (each.reshape(values.shape[1:]) for each in interval(values.reshape(len(values), -1).T))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)
