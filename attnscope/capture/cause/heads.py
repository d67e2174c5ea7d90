"""Whether each head acts on its module's result, in its own columns, and which row of a module's input asks.

Of each row one head is changed. A module may also sort its rows, answer, and sort them back: then its answers
stand in other rows than those of the result, and nothing is wrong, since the query that asked is of the row
that receives. Code words once more tell which row each query is made of.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnscope.capture.cause import rows
from attnscope.capture.cause.outputs import Trial, Unit, one_each, perturbed, row_changes
from attnscope.capture.cause.passage import Hooks
from attnscope.capture.cause.rerun import Clean, Rerun
from attnscope.capture.following.answers import Forward, Place

NOWHERE, EVERYWHERE = -1, -2  # for a head: the change stands in no one's columns, in all heads' alike
_ALIKE = 0.02  # of a row's change: what lies further from the mean of its heads' columns is not alike
_NEARLY_ALL = 0.9  # of a row's change stands in the columns of one head

QueryRows = Int[Tensor, " row"]


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
    """The rows of a module's result whose answers were made others, each with the head that this was in."""
    return [
        (trial.starts[place] + row, (place, head))
        for place in trial.places
        for row, head in amounts(trial, place).nonzero().tolist()
    ]


def note_heads(
    trial: Trial, clean: Clean, now: Sequence[Tensor], changed: Sequence[tuple[int, Unit]]
) -> None:
    """Notes whose change changed the result."""
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
    """Notes in which head's columns the change of each row stands."""
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
    """For each row of an answer the row of the module's first hidden state that its query is made of.

    None of it where a query is made of several rows, or of none.
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
