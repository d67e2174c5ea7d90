"""All that runs without weights show of a model: of the whole, and of the parts that it does not reach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from attnscope.capture.dry_run.run import DryRun, run_dry
from attnscope.capture.dry_run.watch import DryCall
from attnscope.capture.following.takeover import STAND_INS
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import Tower


@dataclass(frozen=True, eq=False)
class Observed:
    """What one or several runs without weights have shown of the sites they reached."""

    calls: Mapping[nn.Module, Sequence[DryCall]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str

    def of(self, tower: Tower, layer: int) -> list[DryCall]:
        every = (each for site in tower.sites for each in self.calls.get(site.module, ()))
        return [each for each in every if each.layer == layer]

    def reached(self, tower: Tower) -> bool:
        return any(self.calls.get(site.module) for site in tower.sites)


def observe(model: nn.Module, towers: Sequence[Tower], length: int) -> Observed:
    """The run of the whole model, and for towers that it does not reach that of the part they stand in."""
    every = [site for tower in towers for site in tower.sites]
    runs = [run_dry(model, every, length, STAND_INS)]
    for tower in towers:
        for part in _parts(model, tower.sites[0].path):
            if any(run.calls.get(site.module) for run in runs for site in tower.sites):
                break
            inside = set(part.modules())
            held = [site for site in every if site.module in inside]
            runs.append(run_dry(part, held, length, STAND_INS))
    merged = {site.module: _first(site, runs) for site in every}
    rotated = {module: width for run in runs for module, width in run.rotated.items()}
    used = frozenset[nn.Parameter]().union(*(run.used for run in runs))
    problem = "" if all(merged.values()) else next((run.problem for run in runs if run.problem), "")
    return Observed(merged, rotated, used, problem)


def _first(site: Site, runs: Sequence[DryRun]) -> Sequence[DryCall]:
    return next((run.calls[site.module] for run in runs if run.calls.get(site.module)), ())


def _parts(model: nn.Module, path: str) -> list[nn.Module]:
    """The models inside of the model that hold the module at `path`, outermost first."""
    parts = path.split(".")
    inner = (model.get_submodule(".".join(parts[:end])) for end in range(1, len(parts)))
    return [each for each in inner if hasattr(each, "main_input_name") and hasattr(each, "config")]
