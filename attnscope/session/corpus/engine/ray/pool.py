"""The engine: windows of splits become datasets of Ray Data, whose actors measure them in whatever order.

A window is as much as is held in memory at once, so a corpus of any size streams through; the pool of actors
is made anew for each, which costs seconds, and a window is minutes of work for each of them. The order in
which splits come back is left free, as whoever calls merges by their numbers: waiting for the order would
keep what is finished from being kept.
"""

import os
import pickle
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from attnscope.errors import AttnscopeError, InputError, one_line
from attnscope.session.corpus.engine.interface import Engine, Finished, Measurer, Recipe, Split
from attnscope.session.corpus.engine.local import Worker, WorkerBugError
from attnscope.session.corpus.engine.machine import cores as own_cores
from attnscope.session.corpus.engine.machine import settings_digest, versions
from attnscope.session.corpus.engine.ray.cluster import ADDRESS, check_answers, cluster, the_library
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import find_checkpoint
from attnscope.session.request import ModelRequest
from attnscope.version import __version__

WINDOW = 128 * 2**20  # bytes of splits
_MOST = 8192  # splits of a window
_SHOWN = 19  # characters: of a hash twelve digits


@dataclass(frozen=True)
class CheckedRecipe:
    """A recipe that is opened only where it would give the same numbers: the same versions, the same model.

    Machines of a cluster are set up one by one. A model of the same name may be another one there, and
    another release of torch rounds differently; both would pass for the same run. `here` is what there is
    where the recipe was made.

    A model that is named by a folder is looked for in the same folder: `beside` is where this process stands.
    """

    recipe: Recipe
    here: Mapping[str, str]
    beside: str

    @classmethod
    def of(cls, recipe: Recipe) -> "CheckedRecipe":
        """The recipe with what there is on this machine."""
        return cls(recipe, there_is(recipe), os.getcwd())

    def on(self, device: str) -> "CheckedRecipe":
        """The same for a worker that has this device."""
        return replace(self, recipe=self.recipe.on(device))

    def open(self) -> Measurer:
        """As the recipe has it; `InputError` where this machine has something else."""
        if os.path.isdir(self.beside):
            os.chdir(self.beside)
        there = there_is(self.recipe)
        for name, value in self.here.items():
            if there.get(name) != value:
                differs = f"{_short(there.get(name))} on {platform.node()}, {_short(value)} here"
                raise InputError(f"{name}: {differs}: every machine of the cluster needs the same")
        return self.recipe.open()


def there_is(recipe: Recipe) -> dict[str, str]:
    """What numbers depend on, by name: the versions, and the hashes of the files that would be read."""
    depends_on = {"attnscope": __version__, **versions()}
    request = getattr(recipe, "request", None)
    if isinstance(request, ModelRequest):
        checkpoint = find_checkpoint(request, Quiet())
        whole = len(checkpoint.there) == len(checkpoint.files)
        weights = (checkpoint.digest.result() if whole else None) or checkpoint.source.revision
        depends_on[f"weights of {checkpoint.source.name}"] = str(weights)
        depends_on[f"settings of {checkpoint.source.name}"] = (
            f"sha256:{settings_digest(checkpoint.source.folder)}"
        )
    return depends_on


def _short(value: str | None) -> str:
    return "missing" if value is None else value if len(value) <= _SHOWN else value[:_SHOWN]


def packed(split: Split) -> Any:
    """A table of one row that holds the split: what a block of the dataset is."""
    return _table([pickle.dumps(split)])


def unpacked(table: Any) -> list[Finished]:
    """What the actors made of the rows; an error that one of them met is raised."""
    finished = []
    for row in table.column("held").to_pylist():
        answer = pickle.loads(row)
        if isinstance(answer, Exception):
            raise answer
        finished.append(answer)
    return finished


def _table(held: list[bytes]) -> Any:
    """By Arrow itself: NumPy's strings would lose the zeros at the end of a split's file."""
    import pyarrow

    return pyarrow.table({"held": pyarrow.array(held, pyarrow.large_binary())})


class Actor:
    """Measures split after split on whichever machine Ray puts it: by one process, as the local engine does.

    The process is the same program with the same surroundings as a local worker, so the bits are; a text
    that ends it is found and set aside in the same way. An error comes back as a value: an exception would be
    tried again, and printed by Ray.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.worker = Worker(recipe)

    def __call__(self, table: Any) -> Any:
        """A table of splits to one of what they gave."""
        return _table([pickle.dumps(self._answer(pickle.loads(row))) for row in table["held"].to_pylist()])

    def _answer(self, split: Split) -> Finished | Exception:
        try:
            return self.worker.measure(split)
        except (AttnscopeError, WorkerBugError) as error:
            return error

    def __del__(self) -> None:
        self.worker.stop()


def on_ray(address: str | None = None, workers: int | None = None, device: str = "cpu") -> Engine:
    """So many actors on the cluster at `address` (or `$RAY_ADDRESS`), without one on a Ray of this machine.

    Without `workers` as many as there are cores in all, or GPUs where `device` is `cuda`: each actor then
    has one for itself. `InputError` where Ray is not installed, and for what cannot be.
    """
    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}: with --engine ray it takes at least 1")
    if device.startswith("cuda:"):
        raise InputError(f"--device is {device}: with --engine ray each worker gets a GPU, --device cuda")
    if device == "mps":
        raise InputError("--device is mps: Ray hands out CPUs and CUDA's GPUs, --device cpu or cuda")
    the_library()
    address = address or os.environ.get(ADDRESS) or None
    if address is not None:
        check_answers(address)
    return partial(_run, address, workers, device)


def _run(
    address: str | None,
    workers: int | None,
    device: str,
    recipe: Recipe,
    splits: Iterable[Split],
    listener: Listener,
) -> Iterator[Finished]:
    alike, gpu = CheckedRecipe.of(recipe.on(device)), device == "cuda"
    cores = workers or own_cores()
    with cluster(address, cores, _gpus(workers) if gpu else 0, listener) as ray:
        places = workers or _places(ray, "GPU" if gpu else "CPU")
        _tell_places(ray, places, "GPU" if gpu else "CPU", listener)
        for window in windows(splits):
            yield from _measured(ray, alike, window, places, gpu)


def windows(splits: Iterable[Split], size: int = WINDOW, most: int = _MOST) -> Iterator[list[Any]]:
    """Tables of splits, so many that they take no more than `size` bytes, but at least one."""
    held: list[Any] = []
    taken = 0
    for table in map(packed, splits):
        if held and (len(held) == most or taken + table.nbytes > size):
            yield held
            held, taken = [], 0
        held.append(table)
        taken += table.nbytes
    if held:
        yield held


def _measured(
    ray: Any, recipe: CheckedRecipe, window: list[Any], places: int, gpu: bool
) -> Iterator[Finished]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    dataset = ray.data.from_blocks(window).map_batches(
        Actor,
        fn_constructor_args=(recipe,),
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=min(places, len(window))),
        **({"num_gpus": 1} if gpu else {"num_cpus": 1}),
    )
    try:
        for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from unpacked(table)
    except ray.exceptions.RayError as error:
        kept = "what is measured is kept, the same command goes on from there"
        raise InputError(f"Ray gives up: {one_line(error)}; {kept}") from error


def _places(ray: Any, kind: str) -> int:
    """How many workers there is room for in the cluster, at least one."""
    return max(1, int(ray.cluster_resources().get(kind, 0)))


def _tell_places(ray: Any, places: int, kind: str, listener: Listener) -> None:
    there = int(ray.cluster_resources().get(kind, 0))
    if there < places:
        have = f"{there} {kind}s" if there != 1 else f"1 {kind}"
        listener.notice(f"the Ray cluster has {have} now: workers beyond that start when there are more")


def _gpus(workers: int | None) -> int:
    """How many of this machine's GPUs a Ray that is started here may give away."""
    import torch

    there = torch.cuda.device_count()
    if not there:
        raise InputError("--device is cuda and there is no GPU here: name a cluster with --ray-address")
    return min(there, workers or there)
