"""Merges the parts of a run into larger ones, and all of them into one result."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Kind, MeasureDescription, Verdict
from attnscope.results.base.origin import Provenance
from attnscope.results.stored import codec
from attnscope.verbs.corpus.engine import SetAside
from attnscope.verbs.corpus.folder import DamagedError, Folder, Named
from attnscope.verbs.corpus.moments import ROUNDED, Sketch
from attnscope.verbs.corpus.part import Part, Totals
from attnscope.verbs.corpus.question import Linked
from attnscope.verbs.corpus.result import DISTANCE_ALONE, GAIN, LEVELS, LINK, Corpus, CorpusRead, CorpusScores
from attnscope.verbs.corpus.source import Source
from attnscope.verbs.corpus.splits import placed
from attnscope.verbs.corpus.store import Place

_READ = ("texts", "tokens", "longest", "blanks", "padded", "cut", "unknown", "limit")
_PROVED = ("sampled", "unlike", "held", "queries", "untried")
_LONG = "longer than the tokens that are read"


def merged(parts: Iterable[Part]) -> tuple[Part, Counter[str]]:
    """All parts merged to one, and counts of texts set aside, by reason."""
    aside: Counter[str] = Counter()
    whole: Part | None = None
    for part in parts:
        aside.update(reason_of(each) for each in part.set_aside)
        bare = replace(part, set_aside=())  # which may be many
        whole = bare if whole is None else whole.merged(bare)
    assert whole is not None, "there is a part"
    return whole, aside


def reason_of(aside: SetAside) -> str:
    """The reason without details that differ from text to text."""
    return _LONG if "tokens" in aside.why and "reads at most" in aside.why else aside.why


def with_limit(why: str, limit: int | None) -> str:
    """The reason for display; for texts that are too long with the limit in tokens."""
    return f"longer than {limit:,} tokens" if why == _LONG and limit else why


def result(
    whole: Part,
    aside: Counter[str],
    sources: Sequence[Source],
    digests: Sequence[str],
    linked: Linked | None,
    shown: str,
) -> Corpus:
    """The `Corpus` result of a merged part."""
    proved = whole.proved
    assert proved.provenance is not None, "every part says where it comes from"
    pair = None if linked is None else (linked.source, linked.target)

    def placed_in(place: str) -> str:
        source, line = map(int, place.split(":"))
        return placed(sources[source].name, line)

    totals = whole.totals.moved(placed_in)
    notes = () if not whole.absent else (f"{', '.join(whole.absent)}: {next(iter(whole.absent.values()))}",)
    return Corpus(
        read=CorpusRead(
            files=tuple(source.name for source in sources),
            digests=tuple(digests),
            set_aside=dict(aside.most_common()),
            **{name: getattr(whole, name) for name in _READ},
        ),
        kind=Kind(whole.kind),
        layers=whole.layers,
        heads=whole.heads,
        measures=_scores(whole, totals, pair),
        certified={Verdict(name): count for name, count in proved.certified.items()},
        provenance=codec.decode(Provenance, dict(proved.provenance), codec.Place("provenance", None, {})),
        texts=tuple(totals.outer.texts.values()),
        lengths=totals.lengths.described(),
        tower=whole.tower,
        shown=shown,
        linked=pair,
        notes=(*notes, *proved.beside),
        failed=tuple(f"{placed(sources[each.source].name, each.line)}: {each.why}" for each in proved.failed),
        **{name: getattr(proved, name) for name in _PROVED},
    )


def _scores(whole: Part, totals: Totals, linked: tuple[str, str] | None) -> Mapping[str, CorpusScores]:
    """Scores of every measure by its name; `linked` are the two parts of speech of link measures."""
    described = {name: measure.description for name, measure in MEASURES.items()}
    if linked is not None:
        described |= {description.name: description for description in _of_links(*linked)}
    count, mean, error = totals.moments.whole()
    halves = totals.moments.each()[1]
    places, by_length = totals.outer.places(), np.stack([totals.lengths.moments.each()[i] for i in (1, 2, 0)])
    quantiles = totals.quantiles(LEVELS)
    scored = {}
    for i, name in enumerate(whole.measures):
        description = described[name]
        missing = whole.absent.get(name, "")
        if not missing and not count[i].any():
            missing = "no text has it"
        values, agreement = (mean[i], None) if not description.classes else _commonest(totals, i, description)
        limits = _limits(name, description, values, whole.longest)
        scored[name] = CorpusScores(
            scores=HeadScores(description, whole.layers, whole.heads, values, limits, absent=missing),
            error=np.full_like(error[i], np.nan) if description.classes else error[i],
            count=count[i],
            quantiles=quantiles[:, i],
            halves=halves[:, i],
            ends=totals.outer.values[:, :, i],
            texts=places[:, :, i],
            of_lengths=by_length[:, :, i],
            agreement=agreement,
            off=ROUNDED,
        )
    return scored


def _of_links(source: str, target: str) -> tuple[MeasureDescription, ...]:
    """Descriptions of the three link measures, in their order."""
    pair = f"{source}->{target}"
    return (
        MeasureDescription(
            name=LINK,
            unit="weight",
            meaning=f"Mean weight of a {source} word on the {target} words of its text.",
            label=f"weight of {pair}",
            strongest=f"head of each layer that links {pair} most",
        ),
        MeasureDescription(
            name=DISTANCE_ALONE,
            unit="weight",
            meaning=f"The same for what any word of the text gives at the distances of {pair}.",
            label=f"weight at the distances of {pair}",
            strongest=f"head of each layer that looks most to where {target} stands",
        ),
        MeasureDescription(
            name=GAIN,
            unit="weight",
            meaning=f"Weight of {pair} less what its distances alone explain.",
            label=f"{pair} beyond its distances",
            least="-1",
            low="avoids them",
            high="seeks them",
            strongest=f"head of each layer that seeks {pair} most",
            signed=True,
        ),
    )


def _limits(name: str, description: MeasureDescription, values: np.ndarray, keys: int) -> tuple[float, float]:
    if name in MEASURES:
        return MEASURES[name].limits_of(values, keys)
    return (-1.0 if description.signed else 0.0), 1.0


def _commonest(totals: Totals, i: int, description: MeasureDescription) -> tuple[np.ndarray, np.ndarray]:
    """The commonest class of every head, the first among equals, and the share of texts that have it."""
    shape, size = totals.least.shape, totals.least.size
    counts = np.stack(
        [totals.sketch.times_of(float(j), size).reshape(shape)[i] for j in range(len(description.classes))]
    )
    whole = counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, counts.max(axis=0) / whole, np.nan)
    return np.where(whole > 0, counts.argmax(axis=0).astype(float), np.nan), share


FAN, TOP = 16, 2


def size_of_parts(first: Part, splits: int) -> float:
    """Estimated bytes of the parts of `splits` splits that are like the first.

    They grow with the distinct rounded values, of which merged parts have fewer than many small ones.
    """
    whole = len(first.written())
    none = Sketch(np.zeros(0, np.int64), np.zeros(0, np.int64))
    bare = len(replace(first, totals=replace(first.totals, sketch=none)).written())
    size = 0.0
    for level, count in ((TOP, splits // FAN**TOP), (1, splits % FAN**TOP // FAN), (0, splits % FAN)):
        size += count * (bare + (whole - bare) * first.totals.sketch.growth(FAN**level))
    return size


@dataclass
class Tree:
    """The parts of a run that exist; `damaged` are files found damaged, whose part is removed."""

    folder: Folder
    parts: dict[tuple[int, int], Named] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Folder) -> "Tree":
        """Reads the parts in a folder, drops those already merged, and completes merges left undone."""
        tree = cls(folder)
        for named in reversed(folder.parts()):  # the highest level first
            at = named.level, named.number
            if at in tree.parts or tree._is_within(*at):
                folder.drop(named)
            else:
                tree.parts[at] = named
        for level, number in sorted(tree.parts):
            tree._grow(level, number)
        folder.clear_rows(tree._is_gathered, FAN**TOP)
        return tree

    def _is_gathered(self, number: int) -> bool:
        return (TOP, number) in self.parts

    @property
    def splits(self) -> int:
        """Number of measured splits."""
        return sum(FAN**level for level, _ in self.parts)

    def has(self, split: int) -> bool:
        """Whether a split is measured."""
        return (0, split) in self.parts or self._is_within(0, split)

    def _is_within(self, level: int, number: int) -> bool:
        above = ((higher, number // FAN ** (higher - level)) for higher in range(level + 1, TOP + 1))
        return any(at in self.parts for at in above)

    def add(self, named: Named) -> None:
        """Adds the part of a split, and merges full groups of parts."""
        if self._is_within(named.level, named.number):
            self.folder.drop(named)
            return
        self.parts[named.level, named.number] = named
        self._grow(named.level, named.number)

    def _grow(self, level: int, number: int) -> None:
        parent = number // FAN
        children = [(level, parent * FAN + i) for i in range(FAN)]
        if level == TOP or not all(each in self.parts for each in children):
            return
        try:
            parts = (self.folder.part(self.parts[each]) for each in children)
            whole = reduce(lambda whole, later: whole.merged(later), parts)
            if level + 1 == TOP and whole.rows:
                whole = replace(whole, rows=self.folder.gathered(whole.rows, parent))
        except DamagedError as error:
            self.lose(error)
            return
        self.parts[level + 1, parent] = self.folder.keep(whole, level + 1, parent)
        for each in children:
            self.folder.drop(self.parts.pop(each))
        if level + 1 == TOP and whole.rows:
            self.folder.clear_rows(self._is_gathered, FAN**TOP)
        self._grow(level + 1, parent)

    def lose(self, error: DamagedError) -> None:
        """Removes a damaged part, or the one with damaged rows: its splits are measured again."""
        levels = range(error.level, TOP + 1)
        within = [(level, error.number // FAN ** (level - error.level)) for level in levels]
        at = next(at for at in within if at in self.parts)
        self.damaged.append(str(error))
        self.folder.drop(self.parts.pop(at))
        if at[0] == TOP:
            self.folder.clear_rows(self._is_gathered, FAN**TOP)

    def in_order(self, splits: int) -> Iterator[Part]:
        """The largest parts that cover `splits` splits, in order; `DamagedError` where one is damaged."""
        at = 0
        while at < splits:
            level = next(level for level in range(TOP, -1, -1) if (level, at // FAN**level) in self.parts)
            yield self.folder.part(self.parts[level, at // FAN**level])
            at += FAN**level


@contextmanager
def rows_into(place: Place, folder: Folder, sources: Sequence[Source]) -> Iterator[Callable[[Part], None]]:
    """Context manager: yields a function that appends a part's rows to one Parquet file."""
    from pyarrow.parquet import ParquetFile, ParquetWriter

    texts, lines, writer = 0, Counter[int](), None

    def add(part: Part) -> None:
        nonlocal texts, writer
        for rows in part.rows:
            own: Any = ParquetFile(io.BytesIO(folder.rows(rows))) if rows.name else None
            for group in range(own.num_row_groups if rows.name else 0):
                table = _in_corpus(own.read_row_group(group), texts, lines, sources)
                writer = writer or ParquetWriter(file, table.schema)
                writer.write_table(table)
            texts += rows.read
            lines.update(rows.lines)

    with place.writing() as file:
        try:
            yield add
        finally:
            if writer is not None:
                writer.close()


def _in_corpus(table: Any, texts: int, lines: Mapping[int, int], sources: Sequence[Source]) -> Any:
    """Rows of a split renumbered for the corpus: `texts` and `lines` are those before the split."""
    import pyarrow

    at = [table.column(name).to_numpy() for name in ("text", "source", "line")]
    places = [
        placed(sources[source].name, line and line + lines.get(source, 0))
        for source, line in zip(at[1].tolist(), at[2].tolist(), strict=True)
    ]
    tokens = table.column("tokens").cast(pyarrow.int32())
    named = {"text": at[0] + texts, "place": pyarrow.array(places, pyarrow.string()), "tokens": tokens}
    return pyarrow.table({**named, **{name: table.column(name) for name in table.column_names[4:]}})
