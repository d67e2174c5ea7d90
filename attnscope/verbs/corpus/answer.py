"""The walk from what is asked of a corpus to its answer, for the command and for the library alike.

The corpus is planned, the run finds its folder, the engine measures what is not measured yet (`run`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.measures import parse_measures
from attnscope.measures.registry import check_measurable, measurable
from attnscope.printable import printable
from attnscope.process.ending import said_when_interrupted, temporary_folder
from attnscope.session.listener import Listener
from attnscope.session.opening import find_checkpoint
from attnscope.session.option import slots, words
from attnscope.session.request import AUTO, Loading, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus.engine import Done, Engine, Finished, Recipe, Split
from attnscope.verbs.corpus.engine.local import alone, described, local, places, resolved, usual_workers
from attnscope.verbs.corpus.folder import Folder
from attnscope.verbs.corpus.identity import identity_of, key_of
from attnscope.verbs.corpus.question import ALL, ENGINES, LOCAL, RAY, REFUSE, CorpusFiles, CorpusQuestion
from attnscope.verbs.corpus.result import Corpus
from attnscope.verbs.corpus.source import Signed, Source, files_of, is_piped, source_of
from attnscope.verbs.corpus.splits import Plan, check_tags, everything, first_texts, share
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import ahead, fetched

if TYPE_CHECKING:
    from attnscope.model.source.checkpoint import Checkpoint

HOME = Path("outputs")
FEW = 32  # texts: measured sooner here than by a process that is started for them


def sources_of(asked: CorpusFiles) -> tuple[Source, ...]:
    """The files that are named, each in its form; `InputError` for one that is given twice."""
    files = files_of(asked.places)
    short = [incoming.called(place.address) if is_piped(place) else place.name for place in files]
    own = short if len(set(short)) == len(short) else [str(place) for place in files]
    return tuple(
        source_of(place, name, asked.form, asked.field, asked.broken == REFUSE)
        for place, name in zip(files, own, strict=True)
    )


def _planned(
    request: ModelRequest, asked: CorpusQuestion, sources: Sequence[Source], listener: Listener
) -> tuple[Plan, bool, "Checkpoint"]:
    spans, linked = everything(sources), asked.linked
    if linked is not None:
        check_tags(spans, {"--from-pos": linked.source, "--to-pos": linked.target})
    with listener.working("looking at the texts"):
        texts, first = first_texts(spans, asked.limit or FEW + 1)
    checkpoint = find_checkpoint(request, listener)
    device = request.device.partition(":")[0] if request.device_map is None else "several"
    plan = Plan.of(spans if asked.limit is None else first, share(checkpoint.whole, device))
    return plan, texts <= FEW, checkpoint


def corpus_of(
    request: ModelRequest,
    asked: CorpusQuestion,
    wanted: Wanted,
    listener: Listener,
    done: Done | None = None,
    engine: Engine | None = None,
    command: str = "",
) -> Corpus:
    """All measures of all chosen heads over the corpus; what was measured before is not measured again.

    `engine` measures in place of the one that is asked for; `done` is told how far it is. The run keeps the
    `command` that was typed.
    """
    given, request = request, _resolved(request, asked, listener)
    engine = engine or engine_of(asked, request)
    measures = asked.measures
    names = parse_measures(measures if isinstance(measures, str) else ",".join(measures))
    names = measurable(names) if measures == ALL else names
    check_measurable(names)
    how = asked.longest, asked.batch, asked.truncate, asked.rows is not None, asked.linked
    from attnscope.verbs.corpus.run import CorpusRecipe, Run

    recipe = CorpusRecipe(request, wanted, names, *how)
    with _with_sizes(sources_of(asked)) as sources:
        signed = Signed(sources)
        plan, few, checkpoint = _planned(request, asked, sources, listener)
        with listener.working("looking at the texts"):
            digests = signed.digests
        identity = identity_of(recipe, sources, digests, checkpoint, asked.limit, plan.size)
        folder = Folder(place_of(asked.run or HOME / f"corpus-{key_of(identity)}"))
        kept = f"what is measured is kept in {folder.place}, the same command goes on from there"
        with folder.locked(listener), said_when_interrupted(printable(kept)):
            begun = folder.claim(identity, _provenance(asked, request, command))
            folder.clear_leftovers()
            few = few and not begun  # what was cut off may end whoever reads it again
            workers = 0 if few and asked.workers is None else asked.workers
            here = partial(_on_this_machine, request, workers, plan.about)
            recipe = replace(recipe, into=folder.place.address)
            run = Run(recipe, signed, plan, folder, listener)
            found = run.corpus(engine or here, done, None if asked.rows is None else place_of(asked.rows))
    of_model = ("-m", found.provenance.model, *words(given, slots(Loading)))
    ran = (*of_model, *words(wanted, ("kind", "tower")))
    return replace(found, provenance=replace(found.provenance, read=asked.read_again, run=ran))


@contextmanager
def _with_sizes(sources: Sequence[Source]) -> Iterator[tuple[Source, ...]]:
    """The sources, with a file in the place of each pipe: a corpus is walked through more than once."""
    with temporary_folder() as folder:
        yield tuple(_with_size(source, Path(folder)) for source in sources)


def _with_size(source: Source, folder: Path) -> Source:
    if (local := source.place.local) is None:
        return source
    file = incoming.as_file(local, folder)
    return (
        source
        if file == local
        else source_of(place_of(file), source.name, source.form, source.field, source.strict)
    )


def device_for(name: str, device: str) -> str:
    """What a run is measured on; with Ray whoever asks need not have it, and `auto` is CUDA's or none."""
    if name != RAY:
        return resolved(device)
    if device != "auto":
        return device
    return "cuda" if resolved(device) == "cuda" else "cpu"


def engine_of(asked: CorpusQuestion, request: ModelRequest) -> Engine | None:
    """The engine that is named; None for processes of this machine. `InputError` for what it cannot do."""
    if asked.engine not in ENGINES:
        raise InputError(f"unknown --engine '{asked.engine}': {', '.join(ENGINES)}")
    if asked.engine == LOCAL:
        for name, value in (("--ray-address", asked.ray_address), ("--ray-resources", asked.ray_resources)):
            if value is not None:
                raise InputError(f"{name} goes with --engine ray: give both")
        return None
    from attnscope.verbs.corpus.engine.ray.nodes import Needs
    from attnscope.verbs.corpus.engine.ray.pool import on_ray

    needs = Needs.of(asked.ray_resources, request)
    return on_ray(asked.ray_address, asked.workers, needs, request.device, fetched)


def _resolved(request: ModelRequest, asked: CorpusQuestion, listener: Listener) -> ModelRequest:
    """The request with what `auto` is here, so that a run that goes on later goes on with that."""
    if request.device_map is None:
        with listener.working("importing torch"):
            return replace(request, device=device_for(asked.engine, request.device))
    if request.device_map == AUTO:
        raise InputError(
            "--device-map auto follows what is free, and a corpus may go on later: give it the map itself, "
            "which `attnscope heads -v` tells with --device-map auto"
        )
    if (asked.workers or 0) > 1 and asked.engine == LOCAL:
        raise InputError(f"--workers is {asked.workers}: with --device-map one model has all devices")
    return request


def _provenance(asked: CorpusQuestion, request: ModelRequest, command: str) -> dict[str, Any]:
    where: dict[str, Any] = {"devices": request.device_map or [request.device]}
    if asked.engine == LOCAL and request.device_map is None:
        where = {"device": described(request.device), "devices": places(request.device)}
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": command, "engine": asked.engine, **where, "begun": begun}


def _on_this_machine(
    request: ModelRequest,
    wanted: int | None,
    most: int,
    recipe: Recipe,
    splits: Iterable[Split],
    listener: Listener,
) -> Iterator[Finished]:
    splits = ahead(splits)
    if wanted == 0:
        return alone(recipe.on(places(request.device)[0]), splits, listener)
    if request.device_map is not None:
        return local(1, (request.device,))(recipe, splits, listener)
    devices = places(request.device)
    workers = min(wanted or usual_workers(request.device), most)
    if request.device != "cpu":
        listener.detail(f"{workers} worker{'s' if workers > 1 else ''} on {', '.join(devices[:workers])}")
        if workers > len(devices):
            listener.notice(f"{workers} workers share {', '.join(devices)}: one for each is the usual")
    return local(workers, devices)(recipe, splits, listener)
