"""The engine of one machine: worker processes, each fed by a thread here, on its devices.

A worker that dies (killed, out of memory, a fault in a library) is started again and its split measured
again: bits are the same, so nothing shows. Where the same split ends two, the text that does is looked for by
halves: one that ends its worker twice is named `deadly`; the split is then measured without it.
"""

import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from attnscope.errors import InputError
from attnscope.process.ending import undone_by_a_signal
from attnscope.process.machine import lean_loading
from attnscope.session.listener import Listener
from attnscope.verbs.corpus.engine import Broken, Engine, Finished, Recipe, Refused, Split
from attnscope.verbs.corpus.engine.worker import THREADS

_TRIES = 2
_PATIENCE = 1.0  # seconds
_MODULE = "attnscope.verbs.corpus.engine.worker"


def local(workers: int, places: tuple[str, ...] = ("cpu",)) -> Engine:
    """An engine of `workers` local processes that share out `places`; `InputError` for less than one."""
    if workers < 1:
        raise InputError(f"--workers is {workers}: it takes at least 1")
    return partial(_run, workers, places)


def _run(
    workers: int, places: tuple[str, ...], recipe: Recipe, splits: Iterable[Split], listener: Listener
) -> Iterator[Finished]:
    served = [Worker(recipe.on(places[i % len(places)])) for i in range(workers)]
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def measured(split: Split) -> Finished:
        worker = free.get()
        try:
            return replace(worker.measure(split), at_once=workers)
        finally:
            free.put(worker)

    coming, running = iter(splits), set[Future[Finished]]()
    more, broken = True, None
    with ExitStack() as stack:
        for worker in served:
            free.put(worker)
            stack.callback(worker.stop)
            stack.enter_context(undone_by_a_signal(worker.stop))
        pool = ThreadPoolExecutor(workers)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        while more or running:
            while more and len(running) < 2 * workers:
                try:
                    split = next(coming, None)
                except InputError as error:  # a source that goes away: what was handed out is kept first
                    split, broken = None, error
                if split is None:
                    more = False
                else:
                    running.add(pool.submit(measured, split))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
        if broken is not None:
            raise broken
        list(pool.map(Worker.leave, served))


class _DiedError(Exception):
    """The worker ended without an answer; the message says how."""


class WorkerBugError(Exception):
    """The traceback of an unexpected error in a worker."""


class _StoppedError(Exception):
    """The worker was stopped, and nobody waits for its answer."""


@dataclass
class Worker:
    """A process that measures splits, started again when it dies."""

    recipe: Recipe
    process: "subprocess.Popen[bytes] | None" = None
    stopped: bool = False

    def measure(self, split: Split) -> Finished:
        """Measures a split, without the texts that kill workers; raises the worker's `AttnscopeError`."""
        if (finished := self._tried(split)) is not None:
            return finished
        counted = self._tried(split.between(0, 0))
        deadly = frozenset(self._deadly(split, 0, counted.texts if counted is not None else 0))
        if (finished := self._tried(replace(split, deadly=deadly))) is not None:
            return finished
        span = split.spans[0]
        at = f"byte {span.start:,} of {span.source.name}"
        raise InputError(f"workers end again and again from {at} on: fewer --workers need less memory")

    def _tried(self, split: Split) -> Finished | None:
        """Measures a split; None where it ends its worker twice."""
        for _ in range(_TRIES):
            with suppress(_DiedError):
                return self._asked(split)
        return None

    def _deadly(self, split: Split, first: int, end: int) -> Iterator[int]:
        """Numbers of the texts from `first` up to `end` that end a worker, found by halves."""
        if self._tried(split.between(first, end)) is not None:
            return
        if end - first <= 1:
            yield from range(first, end)
            return
        middle = (first + end) // 2
        yield from self._deadly(split, first, middle)
        yield from self._deadly(split, middle, end)

    def _asked(self, split: Split) -> Finished:
        died: object = None
        for _ in range(_TRIES):
            if self.process is None:
                try:
                    self.process = _started()
                    self._answer(self.recipe)
                except _DiedError as error:
                    died = error
                    continue
            finished: Finished = self._answer(split)
            return finished
        raise InputError(f"workers end before the model is open, by {died}")

    def _answer(self, asked: Any) -> Any:
        process = self.process
        if self.stopped or process is None:
            raise _StoppedError
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(asked, process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise _DiedError(self._end()) from error
        if isinstance(answer, Refused):
            raise answer.error
        if isinstance(answer, Broken):
            raise WorkerBugError(answer.traceback)
        return answer

    def leave(self) -> None:
        """Ends the process by closing its input, and waits for it."""
        if (process := self.process) is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            process.wait()

    def _end(self) -> str:
        process, self.process = self.process, None
        how = "stopped"
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)  # its output is closed: it is about to be through
            process.kill()
            code = process.wait()
            above = f"exit code {code}, what is wrong stands above"
            how = f"signal {-code}: fewer --workers need less memory" if code < 0 else above
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
        return how

    def stop(self) -> None:
        """Kills the process at once; the worker answers nothing more."""
        self.stopped = True
        if (process := self.process) is not None:
            process.kill()


def _started() -> "subprocess.Popen[bytes]":
    environment = {**os.environ, **THREADS, "PYTHONUNBUFFERED": "1"}
    try:
        return subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for whoever started it
        )
    except OSError as error:
        raise InputError(f"cannot start a worker: {error.strerror}") from error


def alone(recipe: Recipe, splits: Iterable[Split], listener: Listener) -> Iterator[Finished]:
    """An engine that measures every split in order, in this process."""
    with lent():
        measurer = recipe.open()
        for split in splits:
            yield measurer.measure(split)


def cores() -> int:
    """Number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resolved(device: str) -> str:
    """The device to measure on: the kind that `auto` stands for here, or the one that is named.

    `InputError` where there is no such device.
    """
    with lean_loading():
        from attnscope.model.loading.memory import torch_device

    chosen = torch_device(device)
    return chosen.type if device == "auto" else device


def places(device: str) -> tuple[str, ...]:
    """The devices that workers share out: the numbered one, else all of its kind."""
    from attnscope.model.loading.memory import devices

    kind, _, number = resolved(device).partition(":")
    numbers = [number] if number else range(devices().get(kind, 1))
    return tuple(f"{kind}:{each}" for each in numbers) if number or len(numbers) > 1 else (kind,)


def usual_workers(device: str) -> int:
    """The usual number of workers: one for each accelerator, else one for each core."""
    return cores() if resolved(device) == "cpu" else len(places(device))


def described(device: str) -> str:
    """The kind of device with the accelerator's name, such as `cuda (NVIDIA H200)`."""
    import torch

    kind = resolved(device).partition(":")[0]
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return kind if name is None or kind == "cpu" else f"{kind} ({name(places(device)[0])})"


@contextmanager
def lent() -> Iterator[None]:
    """Context manager: restores the number of torch's threads afterwards."""
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
