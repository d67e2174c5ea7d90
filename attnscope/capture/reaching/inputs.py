"""Which row of a module's input each query is made of: code words once more, where answers go other ways.

A module may sort its rows, answer, and sort them back. Then its answers stand in other rows than those of the
result, and nothing is wrong: the query that asked is of the row that receives.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.capture.following.answers import Forward, Place
from attnscope.capture.reaching import rows
from attnscope.capture.reaching.outputs import Trial
from attnscope.capture.reaching.passage import Hooks
from attnscope.capture.reaching.rerun import Clean, Rerun, restored

QueryRows = Int[Tensor, " row"]


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

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        return restored(clean.results[forward], now)

    while mine and (not turn or turn < max((each.shape[1] for each in code.values()), default=0)):
        rerun.run(Hooks(answer, leave, enter_module=enter))
        turn += 1
    found: dict[Forward, QueryRows] = {}
    for forward, each in seen.items():
        if len(each) == code[forward].shape[1]:
            where = rows.decoded(torch.stack(each, 1), code[forward])
            if where is not None and bool((where >= 0).all()):
                found[forward] = where
    return found
