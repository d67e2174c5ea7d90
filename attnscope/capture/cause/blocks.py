"""Whether a module's result acts on its block's, in the rows that asked.

    half of the rows of the block's input another  ->  the queries that change
    the answers of these queries another           ->  the rows of the block's result that change: that half

Where queries are known to be those of the tokens in their place, the first of the two runs is not needed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor, nn

from attnscope.capture.cause import onward, rows
from attnscope.capture.cause.heads import note_columns, note_heads, touched
from attnscope.capture.cause.onward import Halves, Onward
from attnscope.capture.cause.outputs import Trial, one_each, perturbed
from attnscope.capture.cause.passage import Hooks
from attnscope.capture.cause.rerun import Clean, Rerun
from attnscope.capture.following.answers import Forward, Place

Choose = Callable[[Trial, Place], Tensor]  # the rows of an attention whose answers become others


def through_blocks(
    rerun: Rerun,
    clean: Clean,
    tried: Sequence[Trial],
    placed: Collection[Forward],
    disordered: Collection[Forward],
    every_row: bool,
) -> Onward:
    """Finds how the modules' results act on those of their blocks, and whether these are read.

    `placed` are those whose queries are the tokens in place, `disordered` those whose queries are others:
    there code words take the place of one half. With `every_row` they come after it everywhere.
    """
    for trial in tried:
        trial.block = "" if trial.forward in clean.within else "none"
    found = onward.between_blocks(rerun, clean, tried)
    ordered = [trial for trial in tried if trial.forward not in disordered]
    asking = {
        clean.within[t.forward] for t in ordered if t.forward in clean.within and t.forward not in placed
    }
    given = {forward: half for forward, half in found.given.items() if forward in asking}
    _all_turns(rerun, clean, ordered, found.asked, given)
    if strange := [trial for trial in tried if every_row or trial.forward in disordered]:
        bits = rows.words(min(rows.MOST, max(trial.row_count for trial in strange))).shape[1]
        for bit in range(bits):
            _all_turns(rerun, clean, strange, *_asked(rerun, clean, strange, bit))
    for trial in tried:
        if trial.block == "mixed" and not clean.epsilon:  # one scale for all rows carries a little of each
            half, there = (
                found.given.get(clean.within[trial.forward]),
                found.carried.get(clean.within[trial.forward]),
            )
            if half is not None and there is not None and torch.equal(there, half[0]):
                trial.block = "blended"  # its own ways do not carry rows to one another
    return found


def _all_turns(
    rerun: Rerun, clean: Clean, tried: Sequence[Trial], asked: Mapping[Place, Tensor], given: Halves
) -> None:
    turns = max((len(rerun.sharing(trial.forward[0])) for trial in tried), default=0)
    for turn in range(turns):
        active = {
            trial.forward: trial
            for trial in tried
            if rerun.sharing(trial.forward[0]).index(trial.forward[0]) == turn
        }
        _one_run(rerun, clean, active, asked, given)
        # what acts through another attention of its block alone, as a message to its keys
        silent = {f: trial for f, trial in active.items() if trial.block == "silent" and turns > 1}
        if silent := {f: trial for f, trial in silent.items() if len(rerun.sharing(f[0])) > 1}:
            _one_run(rerun, clean, silent, asked, given, unfrozen=True)


def _asked(
    rerun: Rerun, clean: Clean, tried: Sequence[Trial], bit: int
) -> tuple[dict[Place, Tensor], Halves]:
    """Which queries change with the rows of a block's input whose word has this bit, and which those are."""
    asked: dict[Place, Tensor] = {}
    given: Halves = {}
    blocks = {clean.within[trial.forward][0] for trial in tried if trial.forward in clean.within}

    def answer(place: Place, _answered: Tensor, queries: Tensor) -> Tensor | None:
        onward.note_queries(clean, place, queries, asked)
        return clean.answers.get(place)

    def enter(forward: Forward, hidden: Tensor) -> Tensor | None:
        if forward[0] not in blocks or (count := hidden[..., 0].numel()) > rows.MOST:
            return None
        code = rows.words(count)
        given[forward] = code[:, bit % code.shape[1]], hidden.shape[:-1]
        return onward.other_rows(hidden, given[forward][0], 11)

    if blocks:
        rerun.run(Hooks(answer, leave_block=clean.leave_block, enter_block=enter))
    return asked, given


def _one_run(
    rerun: Rerun,
    clean: Clean,
    active: dict[Forward, Trial],
    asked: Mapping[Place, Tensor],
    given: Halves,
    unfrozen: bool = False,
) -> None:
    """The answers of half of the rows another, in one attention module of each block.

    The other attentions of the block answer what they did, or `unfrozen` what they make of it.
    """
    half = {f: rows.halves(trial.row_count, 13) for f, trial in active.items()}

    def chosen(trial: Trial, place: Place) -> Tensor:
        within = clean.within.get(trial.forward)
        if within in given:
            seen = asked.get(place)
            fits = seen is not None and len(seen) == trial.shapes[place].rows
            known = seen is not None and fits and bool(seen.any()) and not bool(seen.all())
            return seen if known else torch.ones(trial.shapes[place].rows, dtype=torch.bool)  # type: ignore[return-value]
        return trial.rows_of(place, half[trial.forward])

    def amounts(trial: Trial, place: Place) -> Tensor:
        # of every attention that stands in a row one head
        here = [unit for unit in trial.units if unit[0] == place]
        return one_each(trial, place, here, 0) * chosen(trial, place)[:, None]

    def answer(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
        before, trial = clean.answers.get(place), active.get(place[:2])
        if trial is None:
            return None if unfrozen else before
        if before is None or place not in trial.shapes or before.shape != answered.shape:
            return before
        amount = amounts(trial, place)
        return perturbed(clean, trial, place, amount, shuffle=clean.epsilon > 0)

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor] | None:
        trial = active.get(forward)
        if trial is not None and not trial.shared:
            note_heads(trial, clean, now, touched(trial, amounts))
        is_alone = forward not in clean.within
        return clean.leave(forward, now) if is_alone else None

    def leave_block(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        for trial in active.values():
            if clean.within.get(trial.forward) == forward:
                expected = _expected(trial, clean, chosen, given)
                _judge(trial, clean, now, expected, rerun, given, chosen, unfrozen)
        return clean.leave_block(forward, now)

    def feed(forward: Forward, part: nn.Module, now: Tensor) -> None:
        before = clean.fed.get((forward, part))
        is_tried = forward in active and not active[forward].shared
        if is_tried and before is not None and before.shape == now.shape:
            note_columns(active[forward], clean, now, before, touched(active[forward], amounts))

    rerun.run(Hooks(answer, leave, leave_block, feed=feed))


def _expected(trial: Trial, clean: Clean, chosen: Choose, given: Halves) -> tuple[Tensor, torch.Size] | None:
    """The rows of the block's result that should change, and their shape; None where that cannot be told."""
    within, shape = clean.within[trial.forward], trial.shape
    if within in given:
        half, leading = given[within]
        partly = all(not bool(chosen(trial, place).all()) for place in trial.places)
        return (half, leading) if partly else None
    if len(trial.places) > 1 and len({*trial.starts.values()}) > 1:
        return None
    return chosen(trial, trial.places[0]), torch.Size((shape.batch, shape.queries))


def _judge(
    trial: Trial,
    clean: Clean,
    now: Sequence[Tensor],
    expected: tuple[Tensor, torch.Size] | None,
    rerun: Rerun,
    given: Halves,
    chosen: Choose,
    unfrozen: bool,
) -> None:
    """Judges each trial by the rows of its block's result that changed; the worst of several runs counts."""
    forward = clean.within[trial.forward]
    pairs = [
        (a, b) for a, b in zip(now, clean.blocks[forward], strict=False) if b.numel() and a.shape == b.shape
    ]
    found = "effect" if any((a != b).any() for a, b in pairs) else "silent" if pairs else "unknown"
    there = None if expected is None else onward.moved(clean.blocks[forward], now, expected[1], clean.epsilon)
    if expected is not None and there is not None:
        half = expected[0]
        missing, more = half & ~there, bool((there & ~half).any())
        if len(trial.padded) == len(missing):
            missing, half = missing & ~trial.padded, half & ~trial.padded
        alone = len(rerun.sharing(trial.forward[0])) == 1
        found = ("other" if alone and missing.any() else "mixed") if more else "own"
        asked_too = forward in given and torch.equal(there, chosen(trial, trial.places[0]))
        if found == "mixed" and (asked_too or unfrozen):
            found = "effect"  # queries were mixed with others before, or another attention carries it on
        if not clean.epsilon and forward not in given:  # else small changes are lost, or rows ask nothing
            trial.block_quiet = int(missing.sum()), int(half.sum())
            trial.coarse = str(now[0].dtype).removeprefix("torch.") if rows.is_coarse(now[0]) else ""
    if trial.block not in ("other", "mixed") or found == "other":
        trial.block = found
