"""Plans, measures and merges a corpus, for the command and for the library.

The corpus is planned, the run finds its folder, the engine measures what is not measured yet, then all is
merged to a result. Beside it stand rows of each text and head as Parquet, where asked for, and texts that
could not be measured.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from attnscope import incoming
from attnscope.errors import CertificateError, InputError
from attnscope.measures import parse_measures
from attnscope.measures.registry import check_measurable, measurable
from attnscope.printable import printable
from attnscope.process.ending import said_when_interrupted, temporary_folder
from attnscope.process.machine import lean_loading
from attnscope.session.listener import Listener
from attnscope.session.opening import find_checkpoint
from attnscope.session.option import slots, words
from attnscope.session.request import AUTO, Loading, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus import merging
from attnscope.verbs.corpus.engine import (
    EVERY,
    SAMPLED,
    Done,
    Engine,
    Finished,
    Forecast,
    Measurer,
    Progress,
    Recipe,
    Split,
    seconds_of,
)
from attnscope.verbs.corpus.engine.local import alone, described, local, places, resolved, usual_workers
from attnscope.verbs.corpus.folder import ASIDE, DamagedError, Folder, Named
from attnscope.verbs.corpus.identity import Instructions, identity_of, key_of
from attnscope.verbs.corpus.merging import Tree, rows_into, size_of_parts
from attnscope.verbs.corpus.part import Part
from attnscope.verbs.corpus.question import ALL, ENGINES, LOCAL, RAY, REFUSE, CorpusFiles, CorpusQuestion
from attnscope.verbs.corpus.result import GAIN, Corpus
from attnscope.verbs.corpus.source import Signed, Source, files_of, is_piped, source_of
from attnscope.verbs.corpus.splits import Plan, check_tags, everything, first_texts, placed, share
from attnscope.verbs.corpus.store import NotWrittenError, Place, place_of
from attnscope.verbs.corpus.texts import ahead, fetched

if TYPE_CHECKING:
    from attnscope.model.source.checkpoint import Checkpoint

HOME = Path("outputs")
FEW = 32  # texts: measured sooner here than by a process that is started for them


def sources_of(asked: CorpusFiles) -> tuple[Source, ...]:
    """The sources behind the named files, each with its form; `InputError` for one given twice."""
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
    """Measures all chosen heads over a corpus; what an earlier run measured is not measured again.

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
    """The sources, with a temporary file in the place of each pipe: a corpus is read more than once."""

    def as_file(source: Source) -> Source:
        local = source.place.local
        if local is None or (file := incoming.as_file(local, Path(folder))) == local:
            return source
        return source_of(place_of(file), source.name, source.form, source.field, source.strict)

    with temporary_folder() as folder:
        yield tuple(map(as_file, sources))


def device_for(name: str, device: str) -> str:
    """The device to measure on; with Ray, `auto` is `cuda` where this machine has it, else `cpu`."""
    if name != RAY:
        return resolved(device)
    if device != "auto":
        return device
    return "cuda" if resolved(device) == "cuda" else "cpu"


def engine_of(asked: CorpusQuestion, request: ModelRequest) -> Engine | None:
    """The engine that is named; None for this machine's processes. `InputError` for impossible options."""
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
    """The request with `auto` replaced by this machine's device, so that a resumed run uses the same."""
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


_ROUNDS = 3  # of measuring a file again that is damaged, before the disk is to blame


@dataclass(frozen=True)
class CorpusRecipe(Instructions):
    """Instructions for a worker that can be opened to a measurer."""

    def on(self, device: str) -> "CorpusRecipe":
        """The recipe for a worker on this device; unchanged where a device map spreads the model."""
        if self.request.device_map is not None:
            return self
        return replace(self, request=replace(self.request, device=device))

    def open(self) -> Measurer:
        """Opens the model in memory, as a measurer."""
        with lean_loading():
            from attnscope.verbs.corpus.measurer import CorpusMeasurer
        return CorpusMeasurer.of(self)


@dataclass
class Run:
    """A run: what is measured (`recipe`), on which texts (`plan`), and where it is kept (`folder`).

    `splits` is their number, once all were handed out; `fresh`, whether any was measured now.
    """

    recipe: CorpusRecipe
    signed: Signed
    plan: Plan
    folder: Folder
    listener: Listener
    splits: int = 0
    fresh: bool = False

    @property
    def sources(self) -> Sequence[Source]:
        """The sources of the corpus."""
        return self.signed.sources

    def corpus(self, engine: Engine, done: Done | None, rows: Place | None) -> Corpus:
        """Measures what is missing and merges the result; damaged parts are measured again."""
        tree, damaged = Tree.of(self.folder), Counter[str]()
        while max(damaged.values(), default=0) < _ROUNDS:
            self._measure(tree, engine, done)
            try:
                if not tree.damaged:
                    found = self._result(tree, rows)
                    if not self.fresh:
                        self.listener.notice(f"all was measured before, and is read from {self.folder.place}")
                    return found
            except DamagedError as error:
                tree.lose(error)
            for name in tree.damaged:
                self.listener.notice(f"'{self.folder.place / name}' is damaged: measured again")
            damaged.update(tree.damaged)
            tree.damaged.clear()
        again = "is damaged again and again: name another folder with --run"
        raise InputError(f"'{self.folder.place}' {again}")

    def _measure(self, tree: Tree, engine: Engine, done: Done | None) -> None:
        through = before = texts = tokens = 0
        began = monotonic()

        def count(finished: Finished | None = None, forecast: Forecast | None = None) -> None:
            nonlocal through, texts, tokens
            if finished is not None:
                through, texts = through + finished.size, texts + finished.texts
                tokens += finished.tokens
            if done is not None:
                done(Progress(texts, tokens, through + before, self.plan.whole, forecast))
            elif forecast is not None:
                self.listener.notice(str(forecast))

        def left() -> Iterator[Split]:
            nonlocal before  # its own: what reads ahead asks from another thread
            self.splits = 0
            for split in self.plan.splits():
                self.splits = split.number + 1
                if tree.has(split.number):
                    before += split.size
                else:
                    yield split

        coming = left()
        first = next(coming, None)
        if first is None:
            return
        self.fresh = True
        left_at_first = self.plan.about - tree.splits
        if tree.parts:
            share = min(tree.splits / self.plan.about, 1)
            self.listener.notice(f"about {share:.0%} were measured before: going on in {self.folder.place}")
        with self.listener.working("measuring") if done is None else nullcontext():
            count()
            try:
                for finished in engine(self.recipe, chain([first], coming), self.listener):
                    named = Named.parsed(finished.name)
                    assert named is not None, "it is kept"
                    forecast = None
                    if not through and left_at_first > 1:
                        forecast = self._forecast(finished, named, left_at_first, monotonic() - began)
                    tree.add(named)
                    count(finished, forecast)
            except NotWrittenError as error:
                kept = f"{(through + before) / self.plan.whole:.0%} of the texts are measured and kept"
                raise InputError(f"{error}: {kept}, the same command goes on from there") from error

    def _forecast(self, first: Finished, named: Named, splits: int, passed: float) -> Forecast | None:
        """Forecast of time, memory and disk for `splits` splits, from the first that was measured.

        None where its part cannot be read: whoever merges it finds that it is damaged.
        """
        try:
            part = self.folder.part(named)
        except DamagedError:
            return None
        whole, rows = self.plan.about, sum(each.size for each in part.rows)
        each, workers = first.seconds - first.certifying, min(first.at_once, splits)
        sampled = SAMPLED * (splits // EVERY) + min(SAMPLED, splits % EVERY)
        return Forecast(
            passed
            - first.seconds
            + seconds_of(each, splits, workers)
            + seconds_of(first.certifying, sampled, workers),
            workers,
            first.memory,
            size_of_parts(part, whole) + whole * rows,
            "Ctrl-C keeps what is measured",
        )

    def _result(self, tree: Tree, rows: Place | None) -> Corpus:
        linked, aside = self.recipe.linked, self.folder.place / ASIDE
        with self.listener.working("adding up"):
            self.signed.check_unchanged()
            to_rows = nullcontext() if rows is None else rows_into(rows, self.folder, self.sources)
            with to_rows as add:
                with aside.writing() as file:
                    whole, left = merging.merged(self._written(tree.in_order(self.splits), file, add))
                if not whole.texts:  # nor are there rows
                    why = merging.with_limit(next(iter(left), ""), whole.limit)
                    wrong = CertificateError if whole.proved.failed else InputError
                    raise wrong(f"no text could be read: {why}; all of it stands in {aside}")
        shown = GAIN if linked else ""
        corpus = merging.result(whole, left, self.sources, self.signed.digests, linked, shown)
        read, model = corpus.read, corpus.provenance.model
        if read.left_out:
            self.listener.notice(f"set aside {read.left_out:,} of the texts and lines: {aside}")
        if read.unknown:
            self.listener.notice(f"{model} cannot spell {read.unknown:,} pieces: read as unknown")
        return corpus

    def _written(
        self, parts: Iterable[Part], aside: IO[bytes], add: Callable[[Part], None] | None
    ) -> Iterator[Part]:
        lines = Counter[int]()
        for part in parts:
            for each in part.set_aside:
                line = each.line and each.line + lines[each.source]
                at = placed(self.sources[each.source].name, line)
                told = {"place": at, "why": each.why, "text": each.text}
                aside.write((json.dumps(told, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            lines.update(part.lines)
            if add is not None:
                add(part)
            yield part
