"""Test whether each head's output affects what its model computes, in its own rows and columns.

    reaches = reaches_of(model, inputs, watched, layers, placed, disordered)
    call = reaches.settled(call)

A reach is refuted only by what is known: the result does not change, or changes in rows that did not ask, or
in another head's columns. Order alone never refutes: rows may be sorted before and sorted back after.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from attnscope.attention import AttentionCall
from attnscope.capture.cause.answers import Forward, Place
from attnscope.capture.cause.blocks import EVERYWHERE, NOWHERE, asking_rows, heads_left, through_blocks
from attnscope.capture.cause.onward import Onward
from attnscope.capture.cause.outputs import Trial, by_words, trials, two_runs
from attnscope.capture.cause.rerun import Clean, Rerun
from attnscope.capture.running import Refused
from attnscope.model.anatomy.sites import Site, every_site
from attnscope.results import Reach
from attnscope.vocabulary import Effect

ACCOMPANIED = "another softmax in its block carries rows to one another, and is not shown"
_UNREAD = "what its block returns is not read on the way to the model's result"
_UNDECIDED = "what comes next does not read what its block returns, and nothing behind that was loaded"
_BESIDE = "rows reach one another in its block on another way too"
_OFTEN = 0.8  # of a head's trials in which its change stood in one head's columns
_OF_ROWS = {  # by `Trial.row_of`
    "silent": (Effect.NONE, "what this attention computes has no effect on its module's result"),
    "other": (Effect.OTHER, "its answers reach other rows than those that asked"),
    "mixed": (Effect.OTHER, "its answers are mixed with those of other rows before they go on"),
}
_OF_BLOCKS = {  # by `Trial.block`
    "silent": (Effect.NONE, "what this attention computes has no effect on its block's result"),
    "other": (Effect.OTHER, "its answers reach other rows of its block than those that asked"),
    "blended": (Effect.OTHER, "its answers are mixed with those of other rows within its block"),
}

Name = tuple[str, int]  # a module's path, and how many attentions it had made before


@dataclass(frozen=True, eq=False)
class Reaches:
    """Effect (reach) of every head's output, by module path and call; `tried`: tested part of the text."""

    found: Mapping[Name, Mapping[int, Reach]] = field(default_factory=dict)
    tried: str = ""
    accompanied: Collection[Name] = ()  # with another attention, not shown, in the block

    def settled(self, call: AttentionCall) -> AttentionCall:
        """A copy of the call with the tested effect (reach) of its heads."""
        found = self.found.get((call.module, call.call), {})
        if (call.module, call.call) in self.accompanied:
            call = replace(call, reservation=call.reservation or ACCOMPANIED)
        return replace(call, reach={head: self._of_the_sample(reach) for head, reach in found.items()})

    def _of_the_sample(self, reach: Reach) -> Reach:
        tried = ", ".join(each for each in (self.tried, reach.reason) if each)
        return replace(reach, reason=tried) if reach.effect is Effect.OWN else reach


def reaches_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    layers: Iterable[int] | None,
    placed: Collection[Name] = (),
    disordered: Collection[Name] = (),
    *,
    every_row: bool = False,
) -> Reaches:
    """Test the effect of the heads of the `watched` modules that serve one of `layers` (None: all).

    All heads of a layer are tested, so that the reach of one does not depend on which were asked for.
    `placed` are the calls whose queries are known to be of the tokens in their place, `disordered` those
    where they are known to be of others. With `every_row` each row is told from every other in the block too.
    Empty where the model does not run again.
    """
    serving = None if layers is None else set(layers)
    path_of = {site.module: site.path for site in watched}
    tried = {site.module: often for site in watched if (often := site.runs_for(serving))}
    others = [site for site in every_site(watched) if site.module not in path_of]
    rerun, seen = Rerun(model, inputs, [*watched, *others], tried), Onward()
    try:
        clean = rerun.clean()
        forwards = [each for each in clean.results if each[0] in tried and not _no_numbers(clean, each)]
        mine = trials(clean, forwards, _padding(inputs))
        names = {trial.forward: {(path_of[p[0]], clean.numbers[p]) for p in trial.places} for trial in mine}
        in_place = {forward for forward, each in names.items() if each <= {*placed}}
        displaced = {forward for forward, each in names.items() if each & {*disordered}}
        if mine:
            two_runs(rerun, clean, mine)
            by_words(rerun, clean, mine)
            if doubted := [trial for trial in mine if trial.row_of in ("other", "mixed")]:
                asking = asking_rows(rerun, clean, doubted)
                for trial in doubted:
                    _compose(trial, asking.get(trial.forward))
            seen = through_blocks(rerun, clean, mine, in_place, displaced, every_row)
            heads_left(rerun, clean, mine)
    except Refused:
        return Reaches()
    found: dict[Name, dict[int, Reach]] = {}
    accompanied = set[Name]()
    for trial in mine:
        exchanged = _exchanged(trial)
        for place, head in trial.units:
            name = path_of[place[0]], clean.numbers[place]
            reach = _reach(trial, place, head, exchanged, rerun.runs)
            block = clean.within.get(trial.forward)
            found.setdefault(name, {})[head] = _onward(reach, block, seen, trial.forward in in_place)
            if block is not None and seen.beside.get(block):
                accompanied.add(name)
    return Reaches(found, accompanied=accompanied)


def _onward(reach: Reach, block: Forward | None, seen: Onward, in_place: bool) -> Reach:
    """The head's reach, lowered or remarked on where its block's result is not known to be read."""
    if reach.effect is not Effect.OWN or block is None:
        return reach
    if block in seen.undecided:
        return replace(reach, effect=Effect.UNKNOWN, reason=_UNDECIDED)
    if block in seen.unread:
        return (
            replace(reach, effect=Effect.NONE, reason=_UNREAD) if in_place else replace(reach, beside=_UNREAD)
        )
    reason = seen.end if block == seen.last else ""
    return replace(reach, reason=reason, beside=_BESIDE if block in seen.beside else "")


def _padding(inputs: Mapping[str, Any]) -> list[torch.Tensor]:
    masks = [each for name, each in inputs.items() if name.endswith("attention_mask")]
    return [each.cpu() == 0 for each in masks if isinstance(each, torch.Tensor) and each.ndim == 2]


def _no_numbers(clean: Clean, forward: tuple[nn.Module, int]) -> bool:
    return any(not bool(clean.answers[place].isfinite().all()) for place in clean.of(forward))


def _compose(trial: Trial, asking: torch.Tensor | None) -> None:
    """Set `row_of`: own where outputs reach the rows their queries came from, unknown without `asking`."""
    if asking is None:
        trial.row_of, trial.why = "unknown", "which rows its queries are made of could not be told"
        return
    if trial.row_of == "mixed" or trial.omap is None:
        return
    there = trial.omap >= 0
    if len(asking) == len(trial.omap) and torch.equal(
        asking[trial.omap[there]], torch.arange(len(asking))[there]
    ):
        trial.row_of = "own"


def _reach(trial: Trial, place: Place, head: int, exchanged: Mapping[int, int], runs: int) -> Reach:
    if trial.shapes[place].rows < trial.row_count and not any(trial.starts.values()):
        return Reach(Effect.UNKNOWN, "its module returns the results of several attentions", runs)
    if known := _OF_ROWS.get(trial.row_of) or _OF_BLOCKS.get(trial.block):
        return Reach(*known, runs)
    if trial.row_of != "own":
        return Reach(Effect.UNKNOWN, trial.why or "its way on could not be told", runs)
    if (place, head) not in trial.alive:
        return Reach(Effect.NONE, f"what head {head} computes has no effect on its module's result", runs)
    if exchanged.get(head) == EVERYWHERE:
        return Reach(Effect.OTHER, f"what head {head} computes goes on in every head's place alike", runs)
    if (other := exchanged.get(head, head)) != head:
        return Reach(Effect.OTHER, f"what head {head} computes goes on in the place of head {other}", runs)
    if trial.quiet:
        count = f"{trial.quiet} of {trial.row_count} rows"
        return Reach(Effect.SOME, f"what it computes for {count} has no effect", runs)
    if trial.block_quiet[0]:
        count = f"{trial.block_quiet[0]} of the {trial.block_quiet[1]} rows that were tried"
        if trial.coarse:
            return Reach(Effect.UNKNOWN, f"{trial.coarse} is too coarse for {count}", runs)
        return Reach(Effect.SOME, f"what it computes for {count} has no effect on its block", runs)
    return Reach(Effect.OWN, "", runs)


def _exchanged(trial: Trial) -> dict[int, int]:
    """For each head, the head whose columns its change is in, or EVERYWHERE; empty if two share one."""
    found = {}
    for head, seen in trial.columns.items():
        (column, count), *_ = Counter(seen).most_common(1)
        if column != NOWHERE and count >= _OFTEN * len(seen):
            found[head] = column
    single = [column for column in found.values() if column != EVERYWHERE]
    return found if len({*single}) == len(single) else {}
