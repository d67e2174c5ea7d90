"""Test whether heads change their own columns of a module's output, and their own rows of its block's.

One head is changed in each row. A module may also sort its rows, attend, and sort them back: then its outputs
stand in other rows than those of the result, and nothing is wrong, since the query that asked is of the row
that receives. Code words then tell which row each query is made of. For blocks:

    replace half of the rows of the block's input  ->  the queries that change
    replace the attention outputs of these queries ->  the rows of the block's result that change: that half

Where queries are known to be those of the tokens in their place, the first of the two runs is not needed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnscope.capture.cause import onward, rows
from attnscope.capture.cause.answers import Forward, Place
from attnscope.capture.cause.onward import Halves, Onward
from attnscope.capture.cause.outputs import Trial, Unit, one_each, perturbed, row_changes
from attnscope.capture.cause.rerun import Clean, Hooks, Rerun

NOWHERE, EVERYWHERE = -1, -2  # a head's change stands in no head's columns, in all alike
_ALIKE = 0.02  # of a row's change: what lies further from the mean of its heads' columns is not alike
_NEARLY_ALL = 0.9  # of a row's change stands in the columns of one head

QueryRows = Int[Tensor, " row"]
Choose = Callable[[Trial, Place], Tensor]  # mask of the attention's rows to perturb


def heads_left(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> None:
    """Test heads whose effect is still unknown, one head in each row; in two rounds at most."""
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
        amount = amounts(trial, place)
        if again and not amount.any():
            return None  # what acts through another attention of its module alone
        return perturbed(clean, trial, place, amount, shuffle=clean.epsilon > 0)

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in active:
            note_heads(active[forward], clean, now, touched(active[forward], amounts))
        return clean.leave(forward, now)

    def feed(forward: Forward, part: nn.Module, now: Tensor) -> None:
        before = clean.fed.get((forward, part))
        if forward in active and before is not None and before.shape == now.shape:
            note_columns(active[forward], clean, now, before, touched(active[forward], amounts))

    rerun.run(Hooks(answer, leave, feed=feed))


def touched(trial: Trial, amounts: Callable[[Trial, Place], Tensor]) -> list[tuple[int, Unit]]:
    """Pairs of a row of the module's result and the (place, head) whose output was perturbed there."""
    return [
        (trial.starts[place] + row, (place, head))
        for place in trial.places
        for row, head in amounts(trial, place).nonzero().tolist()
    ]


def note_heads(
    trial: Trial, clean: Clean, now: Sequence[Tensor], changed: Sequence[tuple[int, Unit]]
) -> None:
    """Mark the perturbed heads that changed the module's result as alive, and note in which columns."""
    before = clean.results[trial.forward]
    if not trial.layouts or len(now) != len(before):
        return
    there = row_changes(trial, before, now, clean.epsilon)
    for row, unit in changed:
        if there[row] if trial.omap is None else bool((there & (trial.omap == row)).any()):
            trial.alive.add(unit)
    if not any(each[0] == trial.forward for each in clean.fed):
        number = next(iter(trial.layouts))
        note_columns(trial, clean, now[number], before[number], changed)


def note_columns(
    trial: Trial, clean: Clean, now: Tensor, before: Tensor, changed: Sequence[tuple[int, Unit]]
) -> None:
    """Note for each perturbed head whose columns the change stands in: one head's, all or no one's."""
    heads, dim = trial.shape.heads, trial.shape.dim
    mine = {row: head for row, (_place, head) in changed}
    ways = [list(rows.layouts(each, trial.shape, trial.row_count)) for each in (now, before)]
    way = next(iter(trial.layouts.values()), 0)
    if trial.omap is not None:
        return  # its rows stand in two orders: which of them this is cannot be told
    if way >= len(ways[0]) or heads == 1 or ways[0][way].shape[1] != heads * dim:
        return
    is_, was = ways[0][way], ways[1][way]
    change = is_.float() - was.float()
    share = rows.slices(change, heads)
    pieces = change.reshape(len(change), heads, dim)
    apart = (pieces - pieces.mean(1, keepdim=True)).flatten(1).norm(dim=1)
    alike = (apart < _ALIKE * change.norm(dim=1)).cpu()
    for row in rows.changed(is_, was, clean.epsilon).nonzero()[:, 0].tolist():
        if row in mine:
            largest = int(share[row].argmax())
            is_clear = bool(share[row, largest] > _NEARLY_ALL)
            where = largest if is_clear else EVERYWHERE if alike[row] else NOWHERE
            trial.columns.setdefault(mine[row], []).append(where)


def asking_rows(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> dict[Forward, QueryRows]:
    """For each module forward, the row of its input that each output row's query is computed from.

    A forward is left out where a query is made of several rows, or of none.
    """
    mine = {trial.forward: trial for trial in tried if not any(trial.starts.values())}
    code: dict[Forward, Bool[Tensor, "row bit"]] = {}
    seen: dict[Forward, list[Tensor]] = {}
    turn = 0

    def enter(forward: Forward, hidden: Tensor) -> Tensor | None:
        if forward not in mine or (count := hidden[..., 0].numel()) > rows.MOST:
            return None
        if forward not in code:
            code[forward] = rows.words(count)
        if turn >= code[forward].shape[1]:
            return None
        there = code[forward][:, turn].view(hidden.shape[:-1])[..., None].to(hidden.device)
        return torch.where(there, rows.shuffled(hidden, 17), hidden)

    def answer(place: Place, answered: Tensor, queries: Tensor) -> Tensor | None:
        before, forward = clean.queries.get(place), place[:2]
        has_turn = forward in code and turn < code[forward].shape[1]
        is_first = forward in mine and place == mine[forward].places[0]
        if has_turn and is_first and before is not None and before.shape == queries.shape:
            pair = rows.as_rows(queries), rows.as_rows(before)
            seen.setdefault(forward, []).append(rows.changed(*pair, clean.epsilon))
        return clean.answers.get(place)

    while mine and (not turn or turn < max((each.shape[1] for each in code.values()), default=0)):
        rerun.run(Hooks(answer, clean.leave, enter_module=enter))
        turn += 1
    found: dict[Forward, QueryRows] = {}
    for forward, each in seen.items():
        if len(each) == code[forward].shape[1]:
            where = rows.decoded(torch.stack(each, 1), code[forward])
            if where is not None and bool((where >= 0).all()):
                found[forward] = where
    return found


def through_blocks(
    rerun: Rerun,
    clean: Clean,
    tried: Sequence[Trial],
    placed: Collection[Forward],
    disordered: Collection[Forward],
    every_row: bool,
) -> Onward:
    """Test how attention modules' results change their blocks' results, and if later layers read these.

    `placed` are the forwards whose queries are the tokens in place, `disordered` those whose queries are
    others: there code words replace the halves. With `every_row` code words follow the halves everywhere.
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
    """Masks of the queries that change with block-input rows chosen by this code bit, and of these rows."""
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
    """Perturb the outputs of half of the rows in one attention module of each block, and judge the change.

    The block's other attentions keep their clean outputs, or if `unfrozen` compute them anew.
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
    """Mask of the rows of the block's result that should change, and their shape; None where unknown."""
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
    """Set `trial.block` by the rows of the block's result that changed; the worst of several runs counts."""
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
