"""Whether a module's result acts on its block's, in the rows that asked.

    half of the rows of the block's input another  ->  the queries that change
    the answers of these queries another           ->  the rows of the block's result that change: that half

Where queries are known to be those of the tokens in their place, the first of the two runs is not needed.
"""

from collections.abc import Callable, Collection, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attnscope.capture.cause import rows
from attnscope.capture.cause.heads import note_columns, note_heads, touched
from attnscope.capture.cause.outputs import Trial, one_each, perturbed
from attnscope.capture.cause.passage import Enter, Hooks
from attnscope.capture.cause.rerun import Clean, Rerun
from attnscope.capture.following.answers import Forward, Place

Choose = Callable[[Trial, Place], Tensor]  # the rows of an attention whose answers become others
Halves = dict[Forward, tuple[Bool[Tensor, " row"], torch.Size]]


def through_blocks(
    rerun: Rerun,
    clean: Clean,
    tried: Sequence[Trial],
    placed: Collection[Forward],
    disordered: Collection[Forward],
    every_row: bool,
) -> None:
    """Finds how the modules' results act on those of their blocks.

    `placed` are those whose queries are the tokens in place, `disordered` those whose queries are others:
    there code words take the place of one half. With `every_row` they come after it everywhere.
    """
    for trial in tried:
        trial.block = "" if trial.forward in clean.within else "none"
    _all_turns(rerun, clean, [trial for trial in tried if trial.forward not in disordered], placed, None)
    if strange := [trial for trial in tried if every_row or trial.forward in disordered]:
        bits = rows.words(min(rows.MOST, max(trial.row_count for trial in strange))).shape[1]
        for bit in range(bits):
            _all_turns(rerun, clean, strange, (), bit)
    _clear_ways(rerun, clean, [trial for trial in tried if trial.block == "mixed"])


def _all_turns(
    rerun: Rerun, clean: Clean, tried: Sequence[Trial], placed: Collection[Forward], bit: int | None
) -> None:
    """One half of the rows, or one bit of their words: each attention module of a block in its turn."""
    asking = [t for t in tried if t.forward in clean.within and t.forward not in placed]
    asked, given = _asked(rerun, clean, asking, bit)
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
    rerun: Rerun, clean: Clean, tried: Sequence[Trial], bit: int | None
) -> tuple[dict[Place, Tensor], Halves]:
    """Which queries change with half of the rows of a block's input, and which half that was."""
    asked: dict[Place, Tensor] = {}
    given: Halves = {}
    if not tried:
        return asked, given
    blocks = {clean.within[trial.forward][0] for trial in tried}

    def answer(place: Place, answered: Tensor, queries: Tensor) -> Tensor | None:
        before = clean.queries.get(place)
        if before is not None and before.shape == queries.shape:
            pair = rows.as_rows(queries), rows.as_rows(before)
            asked[place] = rows.changed(*pair, clean.epsilon)
        return clean.answers.get(place)

    rerun.run(Hooks(answer, leave_block=clean.leave_block, enter_block=_another_half(blocks, given, bit)))
    return asked, given


def _another_half(blocks: Collection[nn.Module], given: Halves, bit: int | None) -> Enter:
    """A hook that changes half of the rows of the hidden state that these blocks read, and notes which."""

    def enter(forward: Forward, hidden: Tensor) -> Tensor | None:
        count = hidden[..., 0].numel()
        if forward[0] not in blocks or count > rows.MOST:
            return None
        code = None if bit is None else rows.words(count)
        half = rows.halves(count, 11) if code is None or bit is None else code[:, bit % code.shape[1]]
        given[forward] = half, hidden.shape[:-1]
        there = half.view(hidden.shape[:-1])[..., None].to(hidden.device)
        return torch.where(there, rows.shuffled(hidden, 11), hidden)

    return enter


def _clear_ways(rerun: Rerun, clean: Clean, mixed: Sequence[Trial]) -> None:
    """Where a block's rows change with other rows' answers: whether its own ways carry rows to one another.

    If these do not, it is the answers that were mixed on their way.
    """
    if not mixed or clean.epsilon:
        return  # one scale for all rows carries them to one another, a little
    given: Halves = {}
    blocks = {clean.within[trial.forward][0] for trial in mixed}

    def leave_block(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        for trial in mixed:
            if clean.within[trial.forward] == forward and forward in given:
                half, leading = given[forward]
                there = _moved(clean, forward, now, leading)
                if there is not None and torch.equal(there, half):
                    trial.block = "blended"
        return clean.leave_block(forward, now)

    rerun.run(Hooks(clean.answer, clean.leave, leave_block, enter_block=_another_half(blocks, given, None)))


def _moved(clean: Clean, forward: Forward, now: Sequence[Tensor], leading: torch.Size) -> Tensor | None:
    """Which rows of a block's result changed, in the first tensor with such axes that did."""
    for is_, was in zip(now, clean.blocks[forward], strict=False):
        if was.numel() and is_.shape == was.shape and was.shape[:-1] == leading:
            there = rows.changed(is_.flatten(0, -2), was.flatten(0, -2), clean.epsilon)
            if there.any():
                return there
    return None


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
                _judge(trial, clean, now, _expected(trial, clean, chosen, given), rerun, given, chosen)
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
) -> None:
    """Judges each trial by the rows of its block's result that changed; the worst of several runs counts."""
    forward = clean.within[trial.forward]
    pairs = [
        (a, b) for a, b in zip(now, clean.blocks[forward], strict=False) if b.numel() and a.shape == b.shape
    ]
    found = "effect" if any((a != b).any() for a, b in pairs) else "silent" if pairs else "unknown"
    there = None if expected is None else _moved(clean, forward, now, expected[1])
    if expected is not None and there is not None:
        half = expected[0]
        missing, more = half & ~there, bool((there & ~half).any())
        alone = len(rerun.sharing(trial.forward[0])) == 1
        found = ("other" if alone and missing.any() else "mixed") if more else "own"
        if found == "mixed" and forward in given and torch.equal(there, chosen(trial, trial.places[0])):
            found = "effect"  # it is the queries that were mixed with others, before
        if len(trial.padded) == len(missing):
            missing, half = missing & ~trial.padded, half & ~trial.padded
        if not clean.epsilon and forward not in given:  # else small changes are lost, or rows ask nothing
            trial.block_quiet = int(missing.sum()), int(half.sum())
            trial.coarse = str(now[0].dtype).removeprefix("torch.") if rows.is_coarse(now[0]) else ""
    if trial.block not in ("other", "mixed") or found == "other":
        trial.block = found
