"""Whether a module's result acts on its block's, in the rows that asked; and every head on the module's.

    half of the rows of the block's input another  ->  the queries that change
    the answers of these queries another           ->  the rows of the block's result that change: that half

Where queries are known to be those of the tokens in their place, the first of the two runs is not needed. In
the second each row's change is in one head alone, so that heads are told apart.
"""

from collections.abc import Callable, Collection, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attnscope.capture.reaching import rows
from attnscope.capture.reaching.outputs import Trial, one_each, perturbed, row_changes
from attnscope.capture.reaching.rerun import Clean, Forward, Place, Rerun, restored

_NEARLY_ALL = 0.9  # of a row's change stands in the columns of one head

Unit = tuple[Place, int]
Halves = dict[Forward, tuple[Bool[Tensor, " row"], torch.Size]]


def through_blocks(rerun: Rerun, clean: Clean, tried: Sequence[Trial], placed: Collection[Forward]) -> None:
    """Finds what becomes of the modules' results; `placed`: their queries are the tokens in place."""
    for trial in tried:
        trial.block = "" if trial.forward in clean.within else "none"
    asked, given = _asked(rerun, clean, [t for t in tried if not t.block and t.forward not in placed])
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


def _asked(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> tuple[dict[Place, Tensor], Halves]:
    """Which queries change with half of the rows of a block's input, and which half that was."""
    asked: dict[Place, Tensor] = {}
    given: Halves = {}
    if not tried:
        return asked, given
    blocks = {clean.within[trial.forward][0] for trial in tried}

    def enter(forward: Forward, hidden: Tensor) -> Tensor | None:
        if forward[0] not in blocks:
            return None
        half = rows.halves(hidden[..., 0].numel(), 11)
        given[forward] = half, hidden.shape[:-1]
        there = half.view(hidden.shape[:-1])[..., None].to(hidden.device)
        return torch.where(there, rows.shuffled(hidden, 11), hidden)

    def answer(place: Place, answered: Tensor, queries: Tensor) -> Tensor | None:
        before = clean.queries.get(place)
        if before is not None and before.shape == queries.shape:
            asked[place] = rows.changed(rows.as_rows(queries), rows.as_rows(before))
        return clean.answers.get(place)

    def leave_block(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        return restored(clean.blocks[forward], now)

    rerun.run(answer, leave_block=leave_block, enter_block=enter)
    return asked, given


def _one_run(
    rerun: Rerun,
    clean: Clean,
    active: dict[Forward, Trial],
    asked: dict[Place, Tensor],
    given: Halves,
    unfrozen: bool = False,
) -> None:
    """The answers of half of the rows another, in one attention module of each block.

    The other attentions of the block answer what they did, or `unfrozen` what they make of it.
    """
    half = {f: rows.halves(trial.row_count, 13) for f, trial in active.items()}

    def chosen(trial: Trial, place: Place) -> Tensor:
        """The rows of an attention whose answers become others."""
        within = clean.within.get(trial.forward)
        if within in given:
            seen = asked.get(place)
            known = seen is not None and bool(seen.any()) and not bool(seen.all())
            return seen if known else torch.ones(trial.shapes[place].rows, dtype=torch.bool)  # type: ignore[return-value]
        return trial.rows_of(place, half[trial.forward])

    def amounts(trial: Trial, place: Place) -> Tensor:
        return one_each(trial, place, trial.units, 0) * chosen(trial, place)[:, None]

    def answer(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
        before, trial = clean.answers.get(place), active.get(place[:2])
        if trial is None:
            return None if unfrozen else before
        if before is None or place not in trial.shapes or before.shape != answered.shape:
            return before
        return perturbed(clean, trial, place, amounts(trial, place), shuffle=False)

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor] | None:
        trial = active.get(forward)
        if trial is not None:
            _note_heads(trial, clean, now, _touched(trial, amounts))
        is_alone = forward not in clean.within
        return restored(clean.results[forward], now) if is_alone else None

    def leave_block(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        for trial in active.values():
            if clean.within.get(trial.forward) == forward:
                _judge(trial, clean, now, _expected(trial, clean, chosen, given), rerun)
        return restored(clean.blocks[forward], now)

    def feed(forward: Forward, part: nn.Module, now: Tensor) -> None:
        before = clean.fed.get((forward, part))
        if forward in active and before is not None and before.shape == now.shape:
            _note_columns(active[forward], now, before, _touched(active[forward], amounts))

    rerun.run(answer, leave, leave_block, feed=feed)


def _expected(trial: Trial, clean: Clean, chosen, given: Halves) -> tuple[Tensor, torch.Size] | None:  # type: ignore[no-untyped-def]
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
) -> None:
    """What the block's result tells."""
    before = clean.blocks[clean.within[trial.forward]]
    pairs = [(a, b) for a, b in zip(now, before, strict=False) if b.numel() and a.shape == b.shape]
    moved = [(a, rows.changed(a.flatten(0, -2), b.flatten(0, -2))) for a, b in pairs]
    moved = [(a, there) for a, there in moved if there.any()]
    if not pairs:
        trial.block = "unknown"
    elif not moved:
        trial.block = "silent"
    else:
        trial.block = "effect"
        for a, there in moved:
            if expected is None or a.shape[:-1] != expected[1]:
                continue
            half = expected[0]
            missing, more = bool((half & ~there).any()), bool((there & ~half).any())
            alone = len(rerun.sharing(trial.forward[0])) == 1
            trial.block = ("other" if alone else "mixed") if missing and more else "mixed" if more else "own"
            return


def heads_left(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> None:
    """Tries the heads that were not seen to act yet, one in each row, twice at most."""
    for again in range(2):
        left = {
            trial.forward: [unit for unit in trial.units if unit not in trial.alive]
            for trial in tried
            if trial.layouts
        }
        rounds = [-(-len(units) // max(1, _rows(tried, f))) for f, units in left.items()]
        for turn in range(max(rounds, default=0)):
            _try_heads(rerun, clean, {t.forward: t for t in tried if left.get(t.forward)}, left, turn, again)


def _rows(tried: Sequence[Trial], forward: Forward) -> int:
    return next(trial.row_count for trial in tried if trial.forward == forward)


def _try_heads(
    rerun: Rerun,
    clean: Clean,
    active: dict[Forward, Trial],
    left: dict[Forward, list[Unit]],
    turn: int,
    again: int,
) -> None:
    def amounts(trial: Trial, place: Place) -> Tensor:
        return one_each(trial, place, left[trial.forward], turn * trial.row_count + again)

    def answer(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
        before, trial = clean.answers.get(place), active.get(place[:2])
        if before is None or trial is None or place not in trial.shapes or before.shape != answered.shape:
            return before
        return perturbed(clean, trial, place, amounts(trial, place), shuffle=False)

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in active:
            _note_heads(active[forward], clean, now, _touched(active[forward], amounts))
        return restored(clean.results[forward], now)

    def feed(forward: Forward, part: nn.Module, now: Tensor) -> None:
        before = clean.fed.get((forward, part))
        if forward in active and before is not None and before.shape == now.shape:
            _note_columns(active[forward], now, before, _touched(active[forward], amounts))

    rerun.run(answer, leave, feed=feed)


def _touched(trial: Trial, amounts: Callable[[Trial, Place], Tensor]) -> list[tuple[int, Unit]]:
    """The rows of a module's result whose answers were made others, each with the head that this was in."""
    return [
        (trial.starts[place] + row, (place, head))
        for place in trial.places
        for row, head in amounts(trial, place).nonzero().tolist()
    ]


def _note_heads(
    trial: Trial, clean: Clean, now: Sequence[Tensor], touched: Sequence[tuple[int, Unit]]
) -> None:
    """Notes whose change changed the result."""
    before = clean.results[trial.forward]
    if not trial.layouts or len(now) != len(before):
        return
    there = row_changes(trial, before, now)
    for row, unit in touched:
        if there[row] if trial.omap is None else bool((there & (trial.omap == row)).any()):
            trial.alive.add(unit)
    if not any(each[0] == trial.forward for each in clean.fed):
        number = next(iter(trial.layouts))
        _note_columns(trial, now[number], before[number], touched)


def _note_columns(trial: Trial, now: Tensor, before: Tensor, touched: Sequence[tuple[int, Unit]]) -> None:
    """Notes in which head's columns the change of each row stands."""
    heads, dim = trial.shape.heads, trial.shape.dim
    mine = {row: head for row, (_place, head) in touched}
    ways = [list(rows.layouts(each, trial.shape, trial.row_count)) for each in (now, before)]
    way = next(iter(trial.layouts.values()), 0)
    if way >= len(ways[0]) or heads == 1 or ways[0][way].shape[1] != heads * dim:
        return
    is_, was = ways[0][way], ways[1][way]
    share = rows.slices(is_.float() - was.float(), heads)
    for row in rows.changed(is_, was).nonzero()[:, 0].tolist():
        if row in mine:
            largest = int(share[row].argmax())
            is_clear = bool(share[row, largest] > _NEARLY_ALL)
            trial.columns.setdefault(mine[row], []).append(largest if is_clear else -1)
