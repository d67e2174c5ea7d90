"""Run one model on one input with changed heads, and compare each run with the untouched one.

    untouched     nothing watches: the answer that every other is compared with
    watched       the same again: the attentions' outputs, the layers' results, what can be read back
    variants      those that begin to differ at one layer go through as a batch, with an untouched entry

The untouched entry shows what rounding alone does to the answer in a batch of that size, and
that layers which were not run again, and scores that were not made, change nothing else; in the first batch
there is one at either end, since some models treat the entries of a batch unlike. Where one strays from the
untouched run by more than rounding, the batch is run once more without these savings, and at last every
variant alone.

They are made on the first route on which all wanted layers are seen (`experiments_on`). Of other inputs
(`Others`) the changes are read back, but nothing is compared with a run of one entry: that was done with
the first. An input grows on its way: what comes before the first layer that is touched is computed once, for
it is the same in all entries. The first time it is computed for each entry too, and where the answers are not
the same all inputs are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnscope.capture.intervening.changes import (
    AnswerRows,
    Attended,
    Logits,
    Place,
    Tap,
    Variant,
    Via,
    Write,
    carried,
    holding,
    rows_only,
    strays,
    with_changes,
)
from attnscope.capture.intervening.passing import Kept, answers_to, passing
from attnscope.capture.intervening.read_back import ReadBack, Writing
from attnscope.capture.run import Selection, nothing_seen, rungs, wanted_layers
from attnscope.capture.running import evaluating, repeated, without_cache
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory
from attnscope.model.anatomy.sites import Site, every_site

TOKENS_AT_ONCE = 4096  # positions of a batch: few enough for any memory that holds the model


@dataclass(frozen=True, eq=False)
class Outcome:
    """Scores of the answer under a variant; `control`: those of the untouched entry in its batch."""

    variant: Variant
    scores: Logits
    control: Logits | None


@dataclass(eq=False)
class Tally:
    """Counts of changed attentions: confirmed by read-back, refuted, and impossible to read back."""

    back: int = 0
    lost: int = 0
    unseen: int = 0

    def add(self, other: "Tally") -> None:
        """Add the counts of other experiments."""
        self.back, self.lost, self.unseen = (
            self.back + other.back,
            self.lost + other.lost,
            self.unseen + other.unseen,
        )


@dataclass(eq=False)
class Experiments:
    """Runs variants of one model on one input, and compares their answers with the untouched one.

    `untouched` are the scores of the model as it is; `answers` its heads' outputs, by place, and
    `faithful` whether the run that was watched gave the very same scores, bit for bit: it is the same work.
    What other parts hand on at `taps` is in `written`. A change goes everywhere, or `via` some heads.
    """

    model: nn.Module
    inputs: Mapping[str, Any]
    sites: Sequence[Site]
    asked: AnswerRows
    taps: Sequence[Tap] = ()
    untouched: Logits = field(init=False)
    answers: dict[Place, Tensor] = field(init=False, default_factory=dict)
    faithful: bool = field(init=False)
    passes: set[Place] = field(init=False)
    tally: Tally = field(init=False, default_factory=Tally)
    via: Via | None = field(init=False, default=None)
    plainness: int = field(init=False, default=0)  # 0 with every saving, 1 without, 2 one by one
    alike: bool = field(init=False, default=False)  # the last entry of a batch equalled the first

    def __post_init__(self) -> None:
        self.inputs = without_cache(self.model, self.inputs)
        with evaluating(self.model):
            self.untouched = self.asked.of(self.model(**self.inputs)).clone()
        self.kept = Kept(self.model, self.sites)
        back = ReadBack(self.model)

        def look(seen: Attended) -> None:
            self.answers[seen.place] = seen.output.detach().clone()
            back.expect(seen, [()])

        self.writing = Writing(self.taps)
        with (
            evaluating(self.model),
            passing(self.sites, look, changing=False) as passage,
            self.kept.keeping(),
            self.writing.watching(back),
            back.watching(),
        ):
            output = self.model(**self.inputs)
            back.end(output)
            watched = self.asked.of(output)
        self.answers = {place: each for place, each in self.answers.items() if place not in passage.none}
        self.faithful, self.passes = torch.equal(watched, self.untouched), back.found

    def along(self, via: Via) -> "Experiments":
        """A copy of the experiments in which changes go along these paths only (`Via`)."""
        made = copy(self)
        made.via = via
        return made

    def run(self, variants: Sequence[Variant]) -> list[Outcome]:
        """Outcome of each variant, in their order."""
        groups: dict[int | None, list[int]] = {}
        for number, variant in enumerate(variants):
            groups.setdefault(min((change.layer for change in variant), default=None), []).append(number)
        found: dict[int, Outcome] = {}
        for first, numbers in groups.items():
            for several in self._batches(numbers):
                outcomes = self._together(first, [variants[number] for number in several])
                found.update(zip(several, outcomes, strict=True))
        return [found[number] for number in range(len(variants))]

    def _batches(self, numbers: Sequence[int]) -> Iterator[Sequence[int]]:
        longest = max((each.shape[2] for each in self.answers.values()), default=1)
        size = max(TOKENS_AT_ONCE // longest - 1, 1)
        size = size if self.via is None else max(size // 2, 1)
        yield from (numbers[start : start + size] for start in range(0, len(numbers), size))

    def _together(self, first: int | None, variants: Sequence[Variant]) -> list[Outcome]:
        """Run one batch with an untouched entry before the variants; where that fails, one by one.

        The first batch has another one behind them: some models treat the entries of a batch unlike.
        """
        while first is not None and self.plainness < 2:
            behind = [] if self.alike else [()]
            entries, answers = self._entries(variants, first)
            try:
                scores, back = self.batch(first, [(), *entries, *behind], saving=self.plainness == 0)
            except AttnscopeError:
                raise
            except Exception as error:
                if is_out_of_memory(error) and len(variants) > 1:
                    half = len(variants) // 2
                    return self._together(first, variants[:half]) + self._together(first, variants[half:])
            else:
                if not self._strays(scores[:1]) and not self._strays(scores[-1:] if behind else scores[:1]):
                    self.alike = True
                    self.count(back)
                    control = scores[:1]
                    each = [scores[i : i + 1] for i in answers]
                    return [Outcome(v, own, control) for v, own in zip(variants, each, strict=True)]
            self.plainness += 1
        if self.via is not None:
            raise InputError("--via runs the text beside itself: this model answers otherwise in a batch")
        return [self._alone(variant) for variant in variants]

    def _entries(self, variants: Sequence[Variant], first: int) -> tuple[list[Variant], list[int]]:
        if self.via is None:
            return list(variants), list(range(1, len(variants) + 1))
        layers = sorted({layer for layer, _ in self.answers if layer >= first})
        pairs = [self.via.entries(variant, layers) for variant in variants]
        answering = 1 if self.via.direct else 2
        return [each for pair in pairs for each in pair], [answering + 2 * i for i in range(len(pairs))]

    def _alone(self, variant: Variant) -> Outcome:
        scores, back = self.batch(None, [variant], saving=False)
        self.count(back)
        return Outcome(variant, scores, None)

    def _strays(self, control: Logits) -> bool:
        return strays(control, self.untouched, self._carried)

    @cached_property
    def _carried(self) -> float:
        return carried(self.untouched)

    def batch(
        self, first: int | None, variants: Sequence[Variant], *, saving: bool, growing: bool = False
    ) -> tuple[Logits, ReadBack]:
        """Scores of each variant `entry row choice`, and the read-back of its changes.

        With `saving`, layers before `first` are not run again; if `growing`, they run for one entry.
        """
        entries, back = len(variants), ReadBack(self.model)
        every = [change for variant in variants for change in variant]
        layers = {change.layer for change in every if not isinstance(change, Write)}
        taps = list(dict.fromkeys(change.tap for change in every if isinstance(change, Write)))
        changed: set[Place] = set()
        # before the first layer nothing has ended; the forwards of what layers share are counted as they run
        saving = saving and (first is None or first >= 0) and not any(tap.shared for tap in taps)

        def handle(seen: Attended) -> Tensor | None:
            if seen.module in beside:
                held = replace(seen, place=(-100 - beside[seen.module], seen.place[1]))
                return self._changed(held, holding(held.place[0], variants), back)
            if seen.place[0] not in layers or seen.place not in self.answers:
                return None
            changed.add(seen.place)
            return self._changed(seen, variants, back)

        begun = self.kept.forwards[first] if saving and first is not None else None
        touched = [site for site in self.sites if layers & set(site.layers)]
        others = [] if self.via is None else self.other_sites
        beside = {site.module: number for number, site in enumerate(others)}
        with ExitStack() as stack:
            stack.enter_context(evaluating(self.model))
            if saving and first is not None:
                stack.enter_context(self.kept.replayed(first, entries))
            if growing and first is not None:
                stack.enter_context(self.kept.growing(first, entries))
            if touched or others:
                stack.enter_context(passing([*touched, *others], handle, changing=True, begun=begun))
            if taps:
                stack.enter_context(self.writing.changing(taps, variants, back))
            if touched or taps:
                stack.enter_context(back.watching())
            if (saving or growing) and first is not None:  # after whoever reads back what is handed on last
                stack.enter_context(rows_only(self.model, self.asked))
            output = self.model(**(self.inputs if growing else repeated(self.inputs, entries)))
            back.end(output)
            scores = self.asked.of(output)
        missed = {place for place in self.answers if place[0] in layers} - changed
        missed |= {tap.place for tap in taps} - {each.place for each in back.seen}
        if missed:
            raise RuntimeError(f"a part of layer {min(missed)[0]} did not come by again")
        return scores, back

    @staticmethod
    def _changed(seen: Attended, variants: Sequence[Variant], back: ReadBack) -> Tensor:
        new = with_changes(seen, variants)
        back.expect(seen, variants)
        return new

    @cached_property
    def other_sites(self) -> list[Site]:
        """Attentions of the model that may not be changed."""
        mine = {site.module for site in self.sites}
        return [site for site in every_site(self.sites) if site.module not in mine]

    def count(self, back: ReadBack) -> None:
        """Add the counts of a read-back to the tally."""
        good, lost, unseen = back.counts(self.passes)
        self.tally.back += good
        self.tally.lost += lost
        self.tally.unseen += unseen

    @property
    def written(self) -> Mapping[Tap, Tensor]:
        """Tensors `token feature` at the taps in the untouched run."""
        return self.writing.written


@dataclass(frozen=True, eq=False)
class Heard:
    """A model's scores and its heads' outputs, by place, from one untouched run."""

    untouched: Logits
    answers: Mapping[Place, Tensor]

    @classmethod
    def of(
        cls, model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], asked: AnswerRows
    ) -> "Heard":
        answers, output = answers_to(model, inputs, sites)
        return cls(asked.of(output).clone(), answers)


_Made = TypeVar("_Made", Experiments, Heard)


def experiments_on(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, asked: AnswerRows
) -> Experiments:
    """Experiments on the selected attention; `InputError` where there is none, or none can be reached."""
    return _by_first_rung(Experiments, model, inputs, selection, asked)


def heard(model: nn.Module, inputs: Mapping[str, Any], selection: Selection, asked: AnswerRows) -> Heard:
    """Scores and head outputs of one untouched run, for `Put`; `InputError` as in `experiments_on`."""
    return _by_first_rung(Heard.of, model, inputs, selection, asked)


def _by_first_rung(
    make: Callable[..., _Made],
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    asked: AnswerRows,
) -> _Made:
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        made = make(model, inputs, rung.watched, asked)
        if not (missing := wanted - {layer for layer, _ in made.answers}):
            return made
    raise nothing_seen(model, rung.tower, sorted(missing))


class Others:
    """Runs the `variants` on other inputs than that of `first`, whose experiments were run before."""

    def __init__(self, first: Experiments, variants: Sequence[Variant]) -> None:
        self.first, self.entries = first, [(), *variants]
        self.layer = min((change.layer for variant in variants for change in variant), default=None)
        self.grows = None if first.plainness == 0 and self.layer is not None else False  # None: unknown

    def scores(self, inputs: Mapping[str, Any], asked: AnswerRows) -> Logits | None:
        """Scores of the untouched model, then of each variant; None where no such batch may be run."""
        first = self.first
        size = len(self.entries) * max((each.shape[2] for each in first.answers.values()), default=1)
        if not first.alike or size > TOKENS_AT_ONCE:
            return None
        made = copy(first)
        made.inputs, made.asked = without_cache(first.model, inputs), asked
        found = self._grown(made)
        scores, back = found or made.batch(None, self.entries, saving=False)
        first.count(back)
        return scores

    def _grown(self, made: Experiments) -> tuple[Logits, ReadBack] | None:
        if self.grows is False:
            return None
        try:
            found = made.batch(self.layer, self.entries, saving=False, growing=True)
        except Exception:  # whatever a model makes of it: then it does not grow
            self.grows = False
            return None
        if self.grows is None:
            whole, _ = made.batch(None, self.entries, saving=False)
            lost = found[1].counts(made.passes)[1]
            self.grows = not lost and not strays(found[0], whole, carried(whole))
        return found if self.grows else None
