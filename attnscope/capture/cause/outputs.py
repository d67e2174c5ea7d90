"""Find which rows of an attention's output each row of its module's result depends on.

    Y(O),  Y(O + D),  Y(O + a D)      D drawn at random, a a factor for each row

Where each row of the result Y depends on its own row of the output O alone, through a matrix, row p of
Y(O + a D) - Y(O) is a_p times that of Y(O + D) - Y(O): a leak of a thousandth of another row is seen in these
two runs. A norm on the way needs more: code words, one bit in a run, tell each row from all others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.capture.cause import rows
from attnscope.capture.cause.answers import Forward, Place
from attnscope.capture.cause.rerun import Clean, Hooks, Rerun
from attnscope.capture.cause.rows import Shape

_STRAIGHT = 84  # machine epsilons: 1e-5 in float32, ten times what matrix products leave
_NO_LONGER = 1e-3  # a half precision's epsilon is too large for the rule of two runs


Unit = tuple[Place, int]  # an attention, and one head of it


@dataclass(eq=False)
class Trial:
    """One forward of a module under test: its attentions, the heads to test, and the findings.

    `row_count` is that of the module's result, `starts` where the rows of each attention begin in it, `units`
    are the attentions and heads. Found: `layouts`, which tensors of the result have these rows; `omap`, the
    row of the output that changes each of them; `quiet`, how many change with none; `alive`, the units that
    have an effect; `columns`, in which head's columns each head's changes stood.
    """

    forward: Forward
    places: tuple[Place, ...]
    shapes: dict[Place, Shape]
    units: tuple[Unit, ...]
    row_count: int
    starts: dict[Place, int]
    row_of: str = ""  # own, silent, other, mixed, unknown; "" while undecided
    why: str = ""
    layouts: dict[int, int] = field(default_factory=dict)
    omap: Int[Tensor, " row"] | None = None
    padded: Bool[Tensor, " row"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    quiet: int = 0
    block_quiet: tuple[int, int] = (0, 0)  # rows without effect on the block, and rows tested
    coarse: str = ""  # the block's dtype where its rounding may hide these rows' effect
    alive: set[Unit] = field(default_factory=set)
    columns: dict[int, list[int]] = field(default_factory=dict)
    block: str = ""  # own, silent, other, mixed, unknown, none

    def note_quiet(self, live: Bool[Tensor, " row"]) -> None:
        """Set `quiet` to the number of rows that are neither `live` nor padding."""
        self.quiet = int((~live & ~self.padded).sum())

    @property
    def shared(self) -> bool:
        """Whether several attentions write to the same rows of the result."""
        return len(self.places) > len({*self.starts.values()})

    @property
    def shape(self) -> Shape:
        return self.shapes[self.places[0]]

    def rows_of(self, place: Place, of_all: Tensor) -> Tensor:
        """The entries for one attention of `of_all`, which has one for every row of the result."""
        start = self.starts[place]
        return of_all[start : start + self.shapes[place].rows]


def trials(clean: Clean, forwards: Iterable[Forward], padding: Sequence[Tensor]) -> list[Trial]:
    """One `Trial` for each module forward that made attentions; `padding` are masks of the inputs."""
    made = []
    for forward in forwards:
        places = tuple(place for place in clean.of(forward) if place in clean.numbers)
        if not places:
            continue
        shapes = {place: Shape(*clean.answers[place].shape) for place in places}
        units = tuple((place, head) for place in places for head in range(shapes[place].heads))
        counts = [shape.rows for shape in shapes.values()]
        here = {each[..., 0].numel() for each in clean.results.get(forward, ()) if each.numel()}
        joined = len(places) > 1 and not ({*counts} & here) and sum(counts) in here
        starts = dict(zip(places, [sum(counts[:i]) * joined for i in range(len(counts))], strict=True))
        count = sum(counts) if joined else max(counts)
        shape = shapes[places[0]]
        here_padded = [each for each in padding if each.shape == (shape.batch, shape.queries) and not joined]
        padded = here_padded[0].flatten() if here_padded else torch.zeros(count, dtype=torch.bool)
        made.append(Trial(forward, places, shapes, units, count, starts, padded=padded))
    return made


def perturbed(
    clean: Clean, trial: Trial, place: Place, amount: Float[Tensor, "row heads"], *, shuffle: bool
) -> Tensor:
    """The clean output plus noise times `amount`; with `shuffle`, permuted features where `amount` > 0."""
    before, shape = clean.answers[place], trial.shapes[place]
    weight = amount.expand(-1, shape.heads).reshape(shape.batch, shape.queries, shape.heads)
    weight = weight.transpose(1, 2)[..., None]
    weight = weight.to(before.device)
    if shuffle:
        return torch.where(weight > 0, rows.shuffled(before, 31), before)
    return before + (rows.noise(before, 3, clean.size(place)) * weight).to(before.dtype)


def one_each(trial: Trial, place: Place, units: Sequence[Unit], turn: int) -> Tensor:
    """Mask `row head`: each row gets one unit in turn, 1 where that is a head of this attention."""
    amount = torch.zeros(trial.shapes[place].rows, trial.shapes[place].heads)
    mine = [unit for unit in units if trial.starts[unit[0]] == trial.starts[place]]
    for row in range(len(amount) if mine else 0):
        where, head = mine[(row + turn) % len(mine)]
        if where == place:
            amount[row, head] = 1
    return amount


def two_runs(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> None:
    """Mark as `own` the trials whose result rows each depend on their own output row alone."""
    by = {trial.forward: trial for trial in tried}
    factors = {
        trial.forward: torch.rand(trial.row_count, generator=torch.Generator().manual_seed(5)) * 0.8 + 0.2
        for trial in tried
    }
    first: dict[Forward, list[Tensor]] = {}

    def answer(scaled: bool):  # type: ignore[no-untyped-def]
        def made(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
            trial = by.get(place[:2])
            if trial is None or place not in trial.shapes or answered.shape != clean.answers[place].shape:
                return clean.answers.get(place)
            each = trial.rows_of(place, factors[trial.forward] if scaled else torch.ones(trial.row_count))
            return perturbed(clean, trial, place, each[:, None], shuffle=False)

        return made

    def leave_first(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in by:
            first[forward] = [each.detach().clone() for each in now]
        return clean.leave(forward, now)

    def leave_second(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in by and forward in first:
            _compare(by[forward], clean.results[forward], first.pop(forward), now, factors[forward])
        return clean.leave(forward, now)

    rerun.run(Hooks(answer(False), leave_first), sketched=True)
    rerun.run(Hooks(answer(True), leave_second), sketched=True)


def _compare(
    trial: Trial, before: Sequence[Tensor], first: Sequence[Tensor], second: Sequence[Tensor], factor: Tensor
) -> None:
    """Set `row_of` by whether the result's rows changed in proportion to the factors of their own outputs."""
    if not len(before) == len(first) == len(second):
        trial.row_of, trial.why = "unknown", "it returns other things from run to run"
        return
    there, straight = torch.zeros(trial.row_count, dtype=torch.bool), True
    moved, seen = False, False
    for number, each in enumerate(zip(before, first, second, strict=True)):
        was, one, two = each
        if not was.numel() or was.shape != one.shape or was.shape != two.shape:
            continue
        seen, moved = True, moved or bool((one != was).any())
        tensors = [list(rows.layouts(tensor, trial.shape, trial.row_count)) for tensor in each]
        tried = [
            (*_off(*way, factor=factor), number) for number, way in enumerate(zip(*tensors, strict=True))
        ]
        if tried := [each for each in tried if each[1].any()]:
            off, live, way = min(tried, key=lambda each: each[0])
            trial.layouts[number] = way
            there |= live
            limit = _STRAIGHT * torch.finfo(was.dtype).eps
            straight = straight and off < limit <= _NO_LONGER
    trial.note_quiet(there)
    if trial.layouts:
        trial.row_of = "own" if straight else ""
    else:
        trial.row_of = "silent" if seen and not moved else "unknown"
        trial.why = "" if seen and not moved else "its result has other rows"
    if straight and len(trial.units) == 1:
        trial.alive |= {*trial.units}


def _off(
    was: rows.Rows, one: rows.Rows, two: rows.Rows, *, factor: Float[Tensor, " row"]
) -> tuple[float, Bool[Tensor, " row"]]:
    """Largest relative deviation of rows from their factors (inf for stray changes), mask of live rows."""
    there = rows.changed(one, was)
    to_one, to_two = one.float() - was.float(), two.float() - was.float()
    off = (to_two - factor[:, None].to(was.device) * to_one).norm(dim=1)
    off = (off / to_one.norm(dim=1).clamp_min(1e-30)).cpu()[there]
    stray = bool(rows.changed(two, was)[~there].any())
    return (float(off.max()) if len(off) and off.isfinite().all() and not stray else float("inf")), there


def by_words(rerun: Rerun, clean: Clean, tried: Sequence[Trial]) -> None:
    """Test by code words on which output row each result row depends, for trials that two runs left open."""
    doubted = {trial.forward: trial for trial in tried if not trial.row_of}
    for trial in doubted.values():
        if trial.row_count > rows.MOST:
            trial.row_of, trial.why = "unknown", f"it has more than {rows.MOST:,} rows"
    code = {f: rows.words(trial.row_count) for f, trial in doubted.items() if not trial.row_of}
    patterns: dict[Forward, list[Bool[Tensor, " row"]]] = {forward: [] for forward in code}
    turn = 0

    def answer(place: Place, answered: Tensor, _queries: Tensor) -> Tensor | None:
        forward, before = place[:2], clean.answers.get(place)
        if forward not in code or place not in doubted[forward].shapes or before is None:
            return before
        trial = doubted[forward]
        if turn >= code[forward].shape[1] or answered.shape != before.shape:
            return before
        bits = trial.rows_of(place, code[forward][:, turn].float())
        return perturbed(clean, trial, place, bits[:, None], shuffle=True)

    def leave(forward: Forward, now: list[Tensor]) -> list[Tensor]:
        if forward in code and turn < code[forward].shape[1]:
            patterns[forward].append(
                row_changes(doubted[forward], clean.results[forward], now, clean.epsilon)
            )
        return clean.leave(forward, now)

    while turn < max((each.shape[1] for each in code.values()), default=0):
        rerun.run(Hooks(answer, leave))
        turn += 1
    for forward, seen in patterns.items():
        _read(doubted[forward], torch.stack(seen, 1), code[forward])


def row_changes(
    trial: Trial, before: Sequence[Tensor], now: Sequence[Tensor], epsilon: float
) -> Bool[Tensor, " row"]:
    """Mask of the changed rows of a module's result, in any of the tensors that were found to hold them."""
    there = torch.zeros(trial.row_count, dtype=torch.bool)
    for number, way in trial.layouts.items():
        if number < len(now) and before[number].shape == now[number].shape:
            is_, was = (
                list(rows.layouts(each[number], trial.shape, trial.row_count))[way] for each in (now, before)
            )
            there |= rows.changed(is_, was, epsilon)
    return there


def _read(trial: Trial, seen: Bool[Tensor, "row bit"], code: Bool[Tensor, "row bit"]) -> None:
    """Set `row_of` and `omap` from the code words: the output row that each row of the result depends on."""
    live = seen.any(1)
    trial.note_quiet(live)
    if not live.any():
        trial.row_of = "silent"
    elif torch.equal(seen[live], code[live]):
        trial.row_of = "own"
        if len(trial.units) == 1:
            trial.alive |= {*trial.units}
    elif (found := rows.decoded(seen, code)) is not None:
        trial.row_of, trial.omap = "other", found
    else:
        more = (seen.sum(1) > code.shape[1] // 2).any()
        trial.row_of = "mixed" if more else "unknown"
        trial.why = "" if more else "some of its rows answer only now and then"
