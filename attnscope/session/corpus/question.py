"""A corpus asked for: found out what it is, measured as far as it is not yet, merged, and given back.

The one door for the command and for the library. `done` is told how many texts are through, of how many.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.analysis.corpus.links import GAIN
from attnscope.errors import InputError
from attnscope.measures import parse_measures
from attnscope.results.claims.corpus import Corpus
from attnscope.session.corpus import merging
from attnscope.session.corpus.chunk_file import Measured
from attnscope.session.corpus.chunks import CHUNK, Census, census, chunks, tagged
from attnscope.session.corpus.engine.interface import Chunk, Engine
from attnscope.session.corpus.engine.local import alone, local
from attnscope.session.corpus.engine.machine import places, resolved, usual_workers
from attnscope.session.corpus.folder import Folder, NotWrittenError
from attnscope.session.corpus.identity import BATCH, LONGEST, Linked, identity_of, key_of
from attnscope.session.corpus.rows import write_aside
from attnscope.session.corpus.source import FIELD, Source, form_of
from attnscope.session.listener import Listener
from attnscope.session.opening import find_checkpoint
from attnscope.session.placing import AUTO
from attnscope.session.request import ModelRequest, Wanted
from attnscope.tokens import printable

if TYPE_CHECKING:
    from attnscope.session.corpus.measurer import CorpusRecipe

Done = Callable[[int, int], None]
HOME = Path("outputs")
LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


def nobody(done: int, whole: int) -> None:
    """Tells nobody how far it is."""


@dataclass(frozen=True)
class CorpusQuestion:
    """Which files, how texts stand in them, what is measured, and where the run is kept.

    `workers` None is one for each accelerator, or else for each core, 0 this very process. The `engine` that
    runs them is `local`, or `ray` at `ray_address`. `run` is the folder of the run, by default one in
    `outputs` that is called after what it is a run of.
    """

    files: Sequence[Path]
    form: str | None = None
    field: str = FIELD
    measures: str = "all"
    source: str | None = None
    target: str | None = None
    limit: int | None = None
    longest: int = LONGEST
    batch: int = BATCH
    truncate: bool = False
    workers: int | None = None
    engine: str = LOCAL
    ray_address: str | None = None
    run: Path | None = None
    rows: Path | None = None
    command: str = ""

    def __post_init__(self) -> None:
        numbers = {"--limit": self.limit, "--batch": self.batch, "--longest": self.longest}
        for name, value in numbers.items():
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: it takes at least 1")
        if self.workers is not None and self.workers < 0:
            raise InputError(f"--workers is {self.workers}: it takes at least 0, this process alone")
        if (self.source is None) != (self.target is None):
            raise InputError("--from-pos and --to-pos go together: give both")
        if not self.files:
            raise InputError("give a file to read")

    @property
    def linked(self) -> Linked | None:
        """The parts of speech that are asked about."""
        if self.source is None or self.target is None:
            return None
        return Linked(self.source, self.target)

    def sources(self) -> tuple[Source, ...]:
        """The files, each in its form; `InputError` for one that is given twice."""
        names = [str(path) for path in self.files]
        if twice := [name for i, name in enumerate(names) if name in names[:i]]:
            raise InputError(f"'{twice[0]}' is given twice: its texts would count twice")
        short = [path.name or str(path) for path in self.files]  # `.` has no name
        own = short if len(set(short)) == len(short) else names
        return tuple(
            Source(path, name, form_of(path, self.form), self.field)
            for path, name in zip(self.files, own, strict=True)
        )


def corpus_of(
    request: ModelRequest,
    asked: CorpusQuestion,
    wanted: Wanted,
    listener: Listener,
    done: Done = nobody,
    engine: Engine | None = None,
) -> Corpus:
    """All measures of all chosen heads over the corpus; what was measured before is not measured again.

    `engine` measures in place of the one that is asked for.
    """
    from attnscope.analysis.corpus.measuring import check_measurable, measurable

    if request.device_map is None:
        request = replace(request, device=device_for(asked.engine, request.device))
    engine = engine or engine_of(asked.engine, asked.ray_address, asked.workers, request.device)
    sources, linked = asked.sources(), asked.linked
    names = parse_measures(asked.measures)
    names = measurable(names) if asked.measures == "all" else names
    check_measurable(names)
    if linked is not None and not tagged(sources):
        raise InputError("--from-pos and --to-pos need words with their part of speech: a .conllu file")
    if asked.rows is not None:
        from attnscope.session.corpus.source import arrow

        arrow()
    with listener.working("counting the texts"):
        there = census(sources, asked.limit)
    for option, tag in (("--from-pos", asked.source), ("--to-pos", asked.target)):
        if tag is not None and tag not in there.tags:
            raise InputError(f"{option}: no word is {printable(tag)}: {', '.join(sorted(there.tags))}")
    request = _resolved(request, asked)
    from attnscope.session.corpus.measurer import CorpusRecipe

    recipe = CorpusRecipe(
        request, wanted, names, asked.longest, asked.batch, asked.truncate, asked.rows is not None, linked
    )
    identity = identity_of(recipe, sources, there, find_checkpoint(request, listener), asked.limit)
    folder = Folder(asked.run or HOME / f"corpus-{key_of(identity)}")
    with folder.locked():
        begun = folder.claim(identity, _told(asked, request))
        folder.clear_leftovers()
        if begun:
            _tell_resumed(folder, there, listener)
        _measure(recipe, sources, asked, there, folder, listener, done, engine)
        return _merge(asked, sources, there, folder, recipe, listener)


def device_for(name: str, device: str) -> str:
    """What `auto` is for the engine of that name: Ray hands out CUDA's devices and no other accelerator."""
    if name != RAY or device != "auto":
        return device
    return "cuda" if resolved(device) == "cuda" else "cpu"


def engine_of(name: str, address: str | None, workers: int | None, device: str) -> Engine | None:
    """The engine that is named; None for processes of this machine. `InputError` for what it cannot do."""
    if name not in ENGINES:
        raise InputError(f"unknown --engine '{name}': {', '.join(ENGINES)}")
    if name == LOCAL:
        if address is not None:
            raise InputError("--ray-address goes with --engine ray: give both")
        return None
    from attnscope.session.corpus.engine.ray.pool import on_ray

    return on_ray(address, workers, device)


def _resolved(request: ModelRequest, asked: CorpusQuestion) -> ModelRequest:
    """The same with what `auto` is here, so that a run that goes on later goes on with the same."""
    if request.device_map is None:
        return replace(request, device=resolved(request.device))
    if request.device_map == AUTO:
        raise InputError(
            "--device-map auto follows what is free, and a corpus may go on later: give it the map itself, "
            "which `attnscope heads -v` tells with --device-map auto"
        )
    if (asked.workers or 0) > 1:
        raise InputError(f"--workers is {asked.workers}: with --device-map one model has all devices")
    return request


def _told(asked: CorpusQuestion, request: ModelRequest) -> dict[str, Any]:
    devices = places(request.device) if request.device_map is None else request.device_map
    return {
        "command": asked.command,
        "devices": devices,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _tell_resumed(folder: Folder, there: Census, listener: Listener) -> None:
    kept = sum(folder.chunk(number).exists() for number in range(there.chunks))
    if kept:
        texts = min(kept * CHUNK, there.texts)
        listener.notice(f"{texts:,} of {there.texts:,} texts were measured before: going on in {folder.path}")


def _measure(
    recipe: "CorpusRecipe",
    sources: Sequence[Source],
    asked: CorpusQuestion,
    there: Census,
    folder: Folder,
    listener: Listener,
    done: Done,
    engine: Engine | None,
) -> None:
    """Every chunk that is not there yet, written as soon as it is measured."""
    through = 0

    def left() -> Iterator[Chunk]:
        nonlocal through
        for chunk in chunks(sources, asked.limit):
            if folder.has(chunk.number):
                through += len(chunk.texts)
                done(through, there.texts)
            else:
                yield chunk

    coming = left()
    first = next(coming, None)
    if first is None:
        return
    done(through, there.texts)
    engine = engine or _processes(asked, recipe, there, listener)
    with listener.working("measuring") if done is nobody else nullcontext():
        for finished in engine(recipe, chain([first], coming), listener):
            try:
                folder.keep(finished.number, finished.content)
            except NotWrittenError as error:
                kept = f"{through:,} of {there.texts:,} texts are measured and kept"
                raise InputError(f"{error}: {kept}, the same command goes on from there") from error
            through += finished.texts
            done(through, there.texts)


def _processes(asked: CorpusQuestion, recipe: "CorpusRecipe", there: Census, listener: Listener) -> Engine:
    if asked.workers == 0:
        device = places(recipe.request.device)[0]
        return lambda recipe, chunks, listener: alone(recipe.on(device), chunks, listener)
    wanted = recipe.request
    if wanted.device_map is not None:
        return local(1, (wanted.device,))
    there_are = places(wanted.device)
    workers = min(asked.workers or usual_workers(wanted.device), there.chunks)
    if wanted.device != "cpu":
        listener.detail(f"{workers} worker{'s' if workers > 1 else ''} on {', '.join(there_are[:workers])}")
    if workers > len(there_are) and wanted.device != "cpu":
        listener.notice(f"{workers} workers share {', '.join(there_are)}: one for each is the usual")
    return local(workers, there_are)


def _merge(
    asked: CorpusQuestion,
    sources: Sequence[Source],
    there: Census,
    folder: Folder,
    recipe: "CorpusRecipe",
    listener: Listener,
) -> Corpus:
    with listener.working("adding up"):
        whole = merging.merged(_kept(folder, there))
        aside = write_aside(folder, _kept(folder, there))
        if not whole.counts["texts"]:
            limit = None if whole.last is None else whole.last.limit
            why = merging.with_limit(next(iter(whole.aside), ""), limit)
            raise InputError(f"no text could be read: {why}; all of it stands in {printable(str(aside))}")
        if asked.rows is not None:
            from attnscope.session.corpus.rows import write_rows

            write_rows(asked.rows, _kept(folder, there))
    shown = GAIN if recipe.linked is not None else ""
    corpus = merging.result(whole, sources, there, recipe.linked, shown)
    if corpus.read.left_out:
        listener.notice(f"set aside {corpus.read.left_out:,} of the texts and lines: {aside}")
    if corpus.read.unknown:
        listener.notice(
            f"{corpus.provenance.model} cannot spell {corpus.read.unknown:,} pieces: read as unknown"
        )
    return corpus


def _kept(folder: Folder, there: Census) -> Iterator[Measured]:
    """The chunks in their order."""
    for number in range(there.chunks):
        chunk = folder.done(number)
        if chunk is None:
            raise InputError(f"'{folder.chunk(number)}' is damaged: give the same command again")
        yield chunk
