"""The Ray engine: splits are rows of a Ray Data dataset, whose actors read, measure and keep them.

Nothing of a text or a result passes through the driver, but for texts that cannot be read from their middle.
So that these can stream a dataset is a window of splits; of others it holds more than half a billion tokens.
The order in which splits come back is left free, as whoever calls merges by their numbers.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

from attnscope.errors import AttnscopeError, InputError, one_line
from attnscope.session.listener import Listener
from attnscope.verbs.corpus.engine import Engine, Finished, Recipe, Split
from attnscope.verbs.corpus.engine.local import Worker, WorkerBugError, cores
from attnscope.verbs.corpus.engine.ray.cluster import ADDRESS, check_answers, cluster, the_library
from attnscope.verbs.corpus.engine.ray.nodes import (
    CheckedRecipe,
    Needs,
    absolute,
    check_same_texts,
    check_seen_by_all,
    check_sees,
    glance,
    stand_at,
)
from attnscope.verbs.corpus.store import Place, place_of

WINDOW = 128 * 2**20  # bytes of splits
_MOST = 8192  # splits of a window
_AT_ONCE = 2  # splits of an actor: one is measured, and what the next one holds is read
Fetched = Callable[[Split], Split]  # the same with what stands in it
_KEPT = "what is measured is kept, the same command goes on from there"


def on_ray(address: str | None, workers: int | None, needs: Needs, device: str, fetched: Fetched) -> Engine:
    """An engine of actors on the cluster at `address` (or `$RAY_ADDRESS`), else on a Ray started here.

    Without `workers` as many as there is room for; what each measures next is read by `fetched`. `InputError`
    without Ray, without an answer at `address`, and for fewer than one worker.
    """
    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}: with --engine ray it takes at least 1")
    the_library()
    address = address or os.environ.get(ADDRESS) or None
    if address is not None:
        check_answers(address)
    return partial(_run, address, workers, needs, device, fetched)


def _run(
    address: str | None,
    workers: int | None,
    needs: Needs,
    device: str,
    fetched: Fetched,
    recipe: Recipe,
    splits: Iterable[Split],
    listener: Listener,
) -> Iterator[Finished]:
    alike = CheckedRecipe.of(recipe.on(device))
    given = None if address else needs.of_this_machine(workers, cores())
    with cluster(address, given, listener) as ray:
        nodes = [node for node in ray.nodes() if node["Alive"] and needs.room([node["Resources"]])]
        room = needs.room(node["Resources"] for node in nodes)
        if room < (workers or 1):
            listener.notice(_too_little(ray, room, needs))
        if address is not None:
            check_seen_by_all(ray, absolute(place_of(recipe.into)), nodes)
        for window in windows(splits):
            yield from _measured(ray, (alike, os.getcwd(), fetched), window, workers or max(1, room), needs)


def windows(splits: Iterable[Split], size: int = WINDOW, most: int = _MOST) -> Iterator[list[Any]]:
    """Lists of packed splits, each list of at most `size` bytes and `most` splits, but at least one split."""
    held: list[Any] = []
    taken = 0
    seen: dict[Place, str] = {}
    for split in splits:
        places = {absolute(span.source.place) for span in split.spans if span.held is None}
        seen |= {place: glance(place) for place in places if place not in seen}
        table = packed(split, {place: seen[place] for place in places})
        if held and (len(held) == most or taken + table.nbytes > size):
            yield held
            held, taken = [], 0
        held.append(table)
        taken += table.nbytes
    if held:
        yield held


def _too_little(ray: Any, room: int, needs: Needs) -> str:
    if room:
        return f"the Ray cluster has room for {room} of these workers now: others start when there is more"
    there = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    has = sorted({", ".join(f"{name} {each.get(name, 0):g}" for name in needs.each) for each in there})
    return (
        f"no machine of the Ray cluster has {needs} for a worker (there is {'; '.join(has)}): waiting for one"
    )


def _measured(
    ray: Any, constructed_with: tuple[Any, ...], window: list[Any], places: int, needs: Needs
) -> Iterator[Finished]:
    most, rows = min(places, len(window)), ray.data.from_blocks(window)
    rows.context.enable_progress_bars = rows.context.print_on_execution_start = False
    dataset = rows.map_batches(
        Actor,
        fn_constructor_args=constructed_with,
        batch_size=1,
        batch_format="pyarrow",
        # one is enough to begin with, and one is enough to end with where the others' machines are lost
        compute=ray.data.ActorPoolStrategy(
            min_size=1,
            initial_size=most,
            max_size=most,
            max_tasks_in_flight_per_actor=_AT_ONCE,
            enable_true_multi_threading=True,
        ),
        max_concurrency=_AT_ONCE,
        **needs.options(),
    )
    try:
        for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from (replace(each, at_once=most) for each in unpacked(table))
    except ray.exceptions.RayError as error:
        raise InputError(f"Ray gives up: {one_line(error)}; {_KEPT}") from error


class Actor:
    """Ray actor that measures splits through a local worker process.

    The process is the same program with the same surroundings as a local worker, so the bits are; a text
    that ends it is found and set aside in the same way. An error comes back as a value: an exception would be
    tried again, and printed by Ray.
    """

    def __init__(self, recipe: CheckedRecipe, beside: str, fetched: Fetched) -> None:
        stand_at(beside)
        self.fetched = fetched
        self.worker = Worker(recipe)
        self.run = absolute(place_of(recipe.into))
        self.checked: set[Place] = set()
        self.turn = Lock()

    def __call__(self, table: Any) -> Any:
        """Measures a table of splits; returns a table of their answers."""
        return _table([pickle.dumps(self._answer(*pickle.loads(row))) for row in table["held"].to_pylist()])

    def _answer(self, split: Split, glances: dict[Place, str]) -> Finished | Exception:
        try:
            if not self.checked:
                check_sees(self.run)
            check_same_texts({place: seen for place, seen in glances.items() if place not in self.checked})
            self.checked |= glances.keys()
            split = self.fetched(split)
            with self.turn:
                return self.worker.measure(split)
        except (AttnscopeError, WorkerBugError) as error:
            return error

    def __del__(self) -> None:
        self.worker.stop()


def packed(split: Split, glances: dict[Place, str]) -> Any:
    """A table of one row that holds the pickled split: a block of the dataset."""
    return _table([pickle.dumps((split, glances))])


def unpacked(table: Any) -> list[Finished]:
    """The actors' answers; raises an error that one of them met."""
    finished = []
    for row in table.column("held").to_pylist():
        answer = pickle.loads(row)
        if isinstance(answer, Exception):
            raise answer
        finished.append(answer)
    return finished


def _table(held: list[bytes]) -> Any:
    """A table of bytes made by Arrow itself: NumPy's strings would lose zeros at the end of a pickle."""
    import pyarrow

    return pyarrow.table({"held": pyarrow.array(held, pyarrow.large_binary())})
