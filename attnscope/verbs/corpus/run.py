"""A run over a corpus in its folder: what is not measured yet is measured, then all is merged to a result.

Beside it stand rows of each text and head as Parquet, where asked for, and texts that could not be measured.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from typing import IO

from attnscope.errors import CertificateError, InputError
from attnscope.process.machine import lean_loading
from attnscope.session.listener import Listener
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
    Split,
    seconds_of,
)
from attnscope.verbs.corpus.folder import (
    ASIDE,
    DamagedError,
    DamagedRowsError,
    Folder,
    Named,
)
from attnscope.verbs.corpus.identity import Instructions
from attnscope.verbs.corpus.merging import AllRows, Tree, size_of_parts
from attnscope.verbs.corpus.part import Part
from attnscope.verbs.corpus.result import GAIN, Corpus
from attnscope.verbs.corpus.source import Signed, Source
from attnscope.verbs.corpus.splits import Plan, placed
from attnscope.verbs.corpus.store import NotWrittenError, Place

_ROUNDS = 3  # of measuring a file again that is damaged, before the disk is to blame


@dataclass(frozen=True)
class CorpusRecipe(Instructions):
    """What a worker is told, which it opens to a model that measures."""

    def on(self, device: str) -> "CorpusRecipe":
        """The recipe for a worker that has this device; a model that is spread has several."""
        if self.request.device_map is not None:
            return self
        return replace(self, request=replace(self.request, device=device))

    def open(self) -> Measurer:
        """The model in memory."""
        with lean_loading():
            from attnscope.verbs.corpus.measurer import CorpusMeasurer
        return CorpusMeasurer.of(self)


@dataclass
class Run:
    """What is measured (`recipe`) of which texts (`plan`), and where it is kept.

    `splits` are how many there are, once all were handed out; `fresh`, whether any was measured now.
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
        """The files that it is of."""
        return self.signed.sources

    def corpus(self, engine: Engine, done: Done | None, rows: Place | None) -> Corpus:
        """The result; what turns out to be damaged is measured again."""
        tree, damaged = Tree.of(self.folder), Counter[str]()
        while max(damaged.values(), default=0) < _ROUNDS:
            self._measure(tree, engine, done)
            try:
                if not tree.damaged:
                    found = self._result(tree, rows)
                    if not self.fresh:
                        self.listener.notice(f"all was measured before, and is read from {self.folder.place}")
                    return found
            except DamagedError:
                pass
            except DamagedRowsError as error:
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
        """Of all of so many splits, of which one was the first to be measured, when so much time had passed.

        None where nobody can read its part: whoever adds it up finds that it is damaged.
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
            to_rows = nullcontext() if rows is None else AllRows.into(rows, self.folder, self.sources)
            with to_rows as table:
                with aside.writing() as file:
                    found = merging.merged(self._written(tree.in_order(self.splits), file, table))
                if not found.whole.texts:  # nor are there rows
                    why = merging.with_limit(next(iter(found.aside), ""), found.whole.limit)
                    wrong = CertificateError if found.whole.proved.failed else InputError
                    raise wrong(f"no text could be read: {why}; all of it stands in {aside}")
        corpus = merging.result(found, self.sources, self.signed.digests, linked, GAIN if linked else "")
        read, model = corpus.read, corpus.provenance.model
        if read.left_out:
            self.listener.notice(f"set aside {read.left_out:,} of the texts and lines: {aside}")
        if read.unknown:
            self.listener.notice(f"{model} cannot spell {read.unknown:,} pieces: read as unknown")
        return corpus

    def _written(self, parts: Iterable[Part], aside: IO[bytes], rows: AllRows | None) -> Iterator[Part]:
        lines = Counter[int]()
        for part in parts:
            for each in part.set_aside:
                line = each.line and each.line + lines[each.source]
                at = placed(self.sources[each.source].name, line)
                told = {"place": at, "why": each.why, "text": each.text}
                aside.write((json.dumps(told, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            lines.update(part.lines)
            if rows is not None:
                rows.add(part)
            yield part
