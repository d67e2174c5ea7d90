"""Answers `model`: attention layers of a model and the cost of one head, without loading weights."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnscope.errors import InputError, listed
from attnscope.model.source.here import BUNDLED
from attnscope.process.machine import alone
from attnscope.reference import EXACT
from attnscope.results import Cost, Outline
from attnscope.session import selection
from attnscope.session.listener import Listener, Log
from attnscope.session.opening import find_source
from attnscope.session.wanted import Numbers, Wanted
from attnscope.vocabulary import Kind

if TYPE_CHECKING:
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loading.load import Plan

Lengths = int | str | Sequence[int] | None


def outline_model(
    name: str | None,
    wanted: Wanted,
    listener: Listener,
    *,
    revision: str | None = None,
    remote_code: bool = False,
    length: Lengths = None,
) -> Outline:
    """Outline of a model: its layers with and without attention, and the cost of one head of `wanted.layer`.

    `length` is one or several lengths of a text in tokens: 512, "128,1024", [128, 1024].
    """
    lengths = _lengths(length)
    source = find_source(name, listener, revision=revision, remote_code=remote_code, weights=False)
    if name is None:
        listener.notice(f"bundled models: {BUNDLED} (attnscope model NAME shows one)")
    if source.example is not None:
        option = "--audio" if source.example.suffix == ".wav" else "--image"
        listener.notice(f"an example comes with {source.name}: {option} {source.example}")
    with listener.working(f"looking at {source.name}"):
        from attnscope.model.anatomy.towers import choose_tower, reading_text
        from attnscope.model.loading.load import plan_model
        from attnscope.model.source.listing import list_files
        from attnscope.verbs.model.outline import outline_plan

        files = list_files(source)
        planned = plan_model(files.checkpoint, remote_code=remote_code)
        if wanted.kind is not None or wanted.tower is not None:
            kind = None if wanted.kind is None else Kind(wanted.kind)
            tower: Tower | None = choose_tower(planned.towers, kind, wanted.tower, planned.name)
        else:
            tower = reading_text(planned.towers) if planned.towers else None
        layer = -1 if tower is None else _layer(planned, tower, wanted.layer)
        return outline_plan(planned, files, tower=tower, layer=layer, length=lengths)


def _lengths(wanted: Lengths) -> list[int] | None:
    if wanted is None:
        return None
    parts = [wanted] if isinstance(wanted, int) else wanted.split(",") if isinstance(wanted, str) else wanted
    try:
        lengths = [int(part) for part in parts]
    except ValueError as error:
        raise InputError(f"--length '{wanted}': numbers of tokens, such as 512 or 128,1024,8192") from error
    if not lengths:
        raise InputError("--length: give at least one number of tokens")
    return lengths


def time_of(cost: Cost) -> tuple[float, float, float]:
    """Seconds that `cost` takes on this machine, and its float32 and float64 FLOP/s, measured now."""
    import torch

    from attnscope.verbs.model.outline import rate, seconds

    rates = rate(torch.float32), rate(EXACT)
    return seconds(cost, *rates), *rates


def _layer(planned: "Plan", tower: "Tower", wanted: "str | int | Sequence[int] | None") -> int:
    from attnscope.model.anatomy.towers import layers_without

    where = f"{planned.name} ({tower.called}): layers {listed(tower.layers)}"
    ranges = selection.parse(wanted, "layer")
    without = layers_without(planned.skeleton, tower)
    chosen = selection.choose(ranges, tower.layers, "layer", where, without)
    if len(chosen) != 1:
        raise InputError(f"the cost is that of one layer, --layer names {len(chosen)}: {listed(chosen)}")
    return chosen[0]


@alone
def outline(
    name: str | None = None,
    *,
    layer: Numbers = -1,
    kind: str | None = None,
    tower: str | None = None,
    length: Lengths = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Outline:
    """Outline of a model, without loading its weights: attention layers of every tower, and costs.

    `costs` of the result are those of one head of `layer` at every `length` in tokens: 512, "128,1024",
    [128, 1024]. `name`, `revision` and `trust_remote_code` are those of `load`, `kind` and
    `tower` choose as for `Reading`. Raises `ModelUnavailableError` and `InputError` as `load` does.
    """
    wanted = Wanted(layer=layer, kind=kind, tower=tower)
    return outline_model(name, wanted, Log(), revision=revision, remote_code=trust_remote_code, length=length)
