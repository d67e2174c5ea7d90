"""All that runs without weights show of a model: of the whole, and of the parts that it does not reach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from attnscope.capture.dry_run.run import EmptyRun, run_empty
from attnscope.capture.dry_run.watch import Handed
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import Tower


@dataclass(frozen=True, eq=False)
class Sight:
    """What one or several runs without weights have shown of the sites they reached."""

    handed: Mapping[nn.Module, Sequence[Handed]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str

    def of(self, tower: Tower, layer: int) -> list[Handed]:
        every = (each for site in tower.sites for each in self.handed.get(site.module, ()))
        return [each for each in every if each.layer == layer]

    def reached(self, tower: Tower) -> bool:
        return any(self.handed.get(site.module) for site in tower.sites)


def look(model: nn.Module, towers: Sequence[Tower], length: int) -> Sight:
    """The run of the whole model, and for towers that it does not reach that of the part they stand in."""
    every = [site for tower in towers for site in tower.sites]
    runs = [run_empty(model, every, length)]
    for tower in towers:
        for part in _parts(model, tower.sites[0].path):
            if any(run.handed.get(site.module) for run in runs for site in tower.sites):
                break
            inside = set(part.modules())
            runs.append(run_empty(part, [site for site in every if site.module in inside], length))
    merged = {site.module: _first(site, runs) for site in every}
    rotated = {module: width for run in runs for module, width in run.rotated.items()}
    used = frozenset[nn.Parameter]().union(*(run.used for run in runs))
    problem = "" if all(merged.values()) else next((run.problem for run in runs if run.problem), "")
    return Sight(merged, rotated, used, problem)


def _first(site: Site, runs: Sequence[EmptyRun]) -> Sequence[Handed]:
    return next((run.handed[site.module] for run in runs if run.handed.get(site.module)), ())


def _parts(model: nn.Module, path: str) -> list[nn.Module]:
    """The models inside of the model that hold the module at `path`, outermost first."""
    parts = path.split(".")
    inner = (model.get_submodule(".".join(parts[:end])) for end in range(1, len(parts)))
    return [each for each in inner if hasattr(each, "main_input_name") and hasattr(each, "config")]
