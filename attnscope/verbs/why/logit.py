"""Direct logit attribution: splits an answer's logit over parts, and tests the largest by replacement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.analysis.answers.question import Question, log_chances, probability
from attnscope.capture.parts.rule import Change, Rule, stranger
from attnscope.capture.parts.rule import Site as Place
from attnscope.capture.parts.run import Sloped, cut_run, run_under
from attnscope.capture.running import Refused, evaluating, without_cache
from attnscope.errors import InputError, one_line
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact
from attnscope.results.claims.effect import Answer
from attnscope.verbs.why.account import Gradients, Name, Names, named_masks, shares, source_shares
from attnscope.verbs.why.contributions_result import Contribution, Taken
from attnscope.verbs.why.reasons import Outcome, Replacing
from attnscope.verbs.why.result import EXACT

TRIED = 8  # parts that are replaced
_SAME = 1e-5  # of the largest logit: most difference between the cut run and the unchanged one


@dataclass(frozen=True, eq=False)
class Told:
    """Numeric fields of a `Contributions` result."""

    answer: Answer
    against: Answer | None
    logit: float
    summed: float
    residual: float
    parts: tuple[Contribution, ...]


def contributions(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[Site],
    question: Question,
    other: Mapping[str, Any] | None = None,
) -> Told:
    """Split the logit of the answer to `question` over parts; replaced parts take values from `other` inputs.

    Raises `InputError` where the model cannot run cut into parts, and where they do not sum to the logit.
    """
    with evaluating(model):
        logits = question.asked.of(model(**without_cache(model, inputs)))
    if torch.finfo(logits.dtype).bits < 32:
        raise InputError(f"in {logits.dtype} no logit is the sum of its parts: --dtype float32")
    answer, against = question.answered(logits), question.rival(logits)
    ids, rivals = answer.ids, question.against
    paths = [site.path for site in sites]
    try:
        base = cut_run(model, inputs, paths, None)
        own = next((site for site in sites if site.path == base.site[0]), None)
        if own is None:
            raise InputError("no attention runs before this answer: it has no heads to be told by")
        names = Names(sites, own)
        rule = run_under(Sloped(model, base.site, names.stacks), model, inputs, paths)
    except Refused as error:
        raise InputError(f"this model does not run cut into parts: {one_line(error)}") from error
    for one in (base, rule):
        far = (exact(question.asked.of(one.output).detach()) - exact(logits)).abs().max()
        if not bool(far <= _SAME * exact(logits).abs().max()):
            raise InputError("this answer cannot be taken apart: cut into parts, the model answers otherwise")
    total = _logit(question.asked.of(rule.output)[0], ids, rivals)
    slopes = _slopes(rule, total)
    found = shares(slopes, names)
    logit, summed = float(_logit(exact(logits[0]), ids, rivals)), sum(found.values())
    largest = float(logits[0, :, [*ids, *rivals]].abs().max())  # rounding is relative to it
    size = max(largest, 0.01 * sum(map(abs, found.values())))
    residual = abs(summed - logit) / size if size else 0.0
    if not residual <= EXACT:
        raise InputError(
            f"this answer cannot be taken apart: its parts miss the logit by {residual:.1g} of it, where "
            f"{EXACT:g} is allowed; something in the model is neither linear nor seen"
        )
    donor = None if other is None else cut_run(model, other, paths, None)
    held = frozenset(leaf.key for leaf in slopes if leaf.key in base.leaves and not rule.behind(leaf))
    removals = Answers(model, inputs, paths, held, donor, base, question, ids)
    parts = _with_removals(_parts(found, slopes, names), slopes, names, removals, logit)
    return Told(answer, against, logit, summed, residual, parts)


def _logit(rows: Tensor, ids: Sequence[int], rivals: Sequence[int]) -> Tensor:
    """Sum of the answer's logits over its rows, minus the rival's."""
    summed: Tensor = rows[range(len(ids)), list(ids)].sum()
    return summed - _logit(rows, rivals, ()) if rivals else summed


def _slopes(rule: Sloped, total: Tensor) -> Gradients:
    if not total.requires_grad:
        raise InputError("this answer cannot be taken apart: it does not depend on what the model reads")
    if (name := stranger(total)) is not None:
        raise InputError(f"this answer cannot be taken apart: {name} is not known to be linear")
    leaves = list(rule.leaves.values())
    found = torch.autograd.grad(total, [leaf.tensor for leaf in leaves], retain_graph=True, allow_unused=True)
    slopes = {
        leaf: slope for leaf, slope in zip(leaves, found, strict=True) if slope is not None and slope.any()
    }
    if (through := next((leaf.key for leaf in slopes if leaf.key in rule.strays), None)) is not None:
        where = f" of {through[0]}" if through[0] else ""
        raise InputError(f"this answer cannot be taken apart: it goes through {through[1]}{where}")
    return slopes


@dataclass(frozen=True, eq=False)
class Answers(Replacing):
    """Runs with replaced parts, measured by the logit and probability of the answer."""

    base: Rule
    question: Question
    ids: tuple[int, ...]

    @property
    def untouched(self) -> tuple[Rule, Place | None]:
        return self.base, None

    def _read(self, rule: Rule, place: int, count: int) -> Outcome:
        rows = self.question.asked.of(rule.output).detach()[place]
        likely = probability(log_chances(rows), self.ids)
        logit = float(_logit(exact(rows), self.ids, self.question.against))
        return Outcome(logit, likely, self._norm(rule, place, count))


Named = tuple[Name, Contribution]


def _parts(found: Mapping[Name, float], slopes: Gradients, names: Names) -> list[Named]:
    parts, sources = list[Named](), source_shares(slopes, names)
    for name, direct in found.items():
        source, share = None, float("nan")
        if name.head is not None and name in sources:
            source = int(sources[name].abs().argmax())
            share = float(sources[name][source])
        parts.append((name, Contribution(name.label, name.layer, name.head, source, share, direct)))
    return parts


def _with_removals(
    parts: list[Named], slopes: Gradients, names: Names, removals: Answers, before: float
) -> tuple[Contribution, ...]:
    mine = [(name, part) for name, part in parts if name.can_be_a_reason and part.direct]
    tried = [name for name, _ in sorted(mine, key=lambda each: -abs(each[1].direct))[:TRIED]]

    def change(name: Name) -> Change:
        masks = named_masks(slopes, names, name)
        return removals.change(masks, {leaf: torch.ones_like(mask) for leaf, mask in masks.items()})

    def alike(name: Name) -> list[Name]:
        return [other for other, _ in parts if name.is_like(other)]

    found = removals.tested(tried, alike, change, before)
    return tuple(
        replace(part, removed=Taken(*found[name][0]), controls=found[name][1]) if name in found else part
        for name, part in parts
    )
