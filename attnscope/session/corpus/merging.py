"""Chunks in the order of their numbers to one result: so totals are the same whoever measured, and when."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnscope.analysis.corpus.links import descriptions
from attnscope.analysis.corpus.totals import HALVES, ROUNDED, Totals
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Kind, MeasureDescription, Verdict
from attnscope.results.base.origin import Provenance
from attnscope.results.claims.corpus import LEVELS, Corpus, CorpusRead, CorpusScores
from attnscope.results.stored.codec import Place, decode
from attnscope.session.corpus.chunk_file import Measured, Proved
from attnscope.session.corpus.chunks import Census
from attnscope.session.corpus.engine.interface import SetAside
from attnscope.session.corpus.identity import Linked
from attnscope.session.corpus.source import Source

_LONG = "longer than the tokens that are read"


@dataclass
class Merged:
    """What chunks say so far."""

    totals: Totals | None = None
    proved: Proved = field(default_factory=Proved)
    counts: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    absent: dict[str, str] = field(default_factory=dict)
    last: Measured | None = None

    def add(self, chunk: Measured) -> None:
        """The next chunk."""
        self.totals = chunk.totals if self.totals is None else self.totals.merged(chunk.totals)
        self.proved = self.proved.merged(chunk.proved)
        for name in ("texts", "tokens", "unknown", "padded", "cut"):
            self.counts[name] += getattr(chunk, name)
        self.longest = max(self.longest, chunk.longest)
        self.aside.update(reason_of(aside) for aside in chunk.set_aside)
        self.absent |= chunk.absent
        self.last = replace(chunk, rows=None)


def merged(chunks: Iterable[Measured]) -> Merged:
    """All of them, which come in the order of their numbers."""
    whole = Merged()
    for chunk in chunks:
        whole.add(chunk)
    return whole


def reason_of(aside: SetAside) -> str:
    """Why, without what differs from text to text."""
    if "tokens" in aside.why and "reads at most" in aside.why:
        return _LONG
    line = re.escape(aside.place.rpartition(":")[0])
    return re.sub(rf"^{line}:[0-9]+: ", "", aside.why)


def with_limit(why: str, limit: int | None) -> str:
    """The reason, with the number of tokens where it is that of texts that are too long."""
    return f"longer than {limit:,} tokens" if why == _LONG and limit else why


def result(
    whole: Merged, sources: Sequence[Source], census: Census, linked: Linked | None, shown: str
) -> Corpus:
    """The result of a whole corpus."""
    last, proved = whole.last, whole.proved
    assert last is not None, "there is a chunk"
    assert proved.provenance is not None, "every chunk says where it comes from"
    notes = () if not whole.absent else (f"{', '.join(whole.absent)}: {next(iter(whole.absent.values()))}",)
    return Corpus(
        read=CorpusRead(
            files=tuple(source.name for source in sources),
            digests=census.digests,
            texts=whole.counts["texts"],
            tokens=whole.counts["tokens"],
            longest=whole.longest,
            blanks=census.blanks,
            set_aside=dict(whole.aside.most_common()),
            padded=whole.counts["padded"],
            cut=whole.counts["cut"],
            unknown=whole.counts["unknown"],
            limit=last.limit,
        ),
        kind=Kind(last.kind),
        layers=last.layers,
        heads=last.heads,
        measures=scores(whole, linked),
        certified={Verdict(name): count for name, count in proved.certified.items()},
        sampled=proved.sampled,
        unlike=proved.unlike,
        provenance=decode(Provenance, dict(proved.provenance), Place("provenance", None, {})),
        tower=last.tower,
        shown=shown,
        linked=None if linked is None else (linked.source, linked.target),
        notes=notes,
    )


def scores(whole: Merged, linked: Linked | None) -> Mapping[str, CorpusScores]:
    """Every measure by its name."""
    last, totals = whole.last, whole.totals
    assert last is not None, "there is a chunk"
    assert totals is not None, "there is a chunk"
    described = {name: measure.description for name, measure in MEASURES.items()}
    if linked is not None:
        described |= {
            description.name: description for description in descriptions(linked.source, linked.target)
        }
    count, mean, error = totals.moments.whole()
    halves = np.stack([totals.moments.half(half)[1] for half in range(HALVES)])
    quantiles = totals.quantiles(LEVELS)
    scored = {}
    for i, name in enumerate(last.measures):
        description = described[name]
        absent = whole.absent.get(name, "")
        if not absent and not count[i].any():
            absent = "no text has it"
        values, agreement = (mean[i], None) if not description.classes else _commonest(totals, i, description)
        limits = _limits(name, description, values, whole.longest)
        scored[name] = CorpusScores(
            scores=HeadScores(description, last.layers, last.heads, values, limits, absent=absent),
            error=np.full_like(error[i], np.nan) if description.classes else error[i],
            count=count[i],
            least=totals.least[i],
            largest=totals.largest[i],
            quantiles=quantiles[:, i],
            halves=halves[:, i],
            agreement=agreement,
            off=ROUNDED,
        )
    return scored


def _limits(name: str, description: MeasureDescription, values: np.ndarray, keys: int) -> tuple[float, float]:
    least, most = (
        MEASURES[name].limits(keys) if name in MEASURES else (-1.0 if description.signed else 0.0, 1.0)
    )
    if np.isinf(most):
        most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
        least = -most if np.isinf(least) else least
    return least, most


def _commonest(totals: Totals, i: int, description: MeasureDescription) -> tuple[np.ndarray, np.ndarray]:
    """The commonest class of every head, of several the first, and the share of texts that have it."""
    shape, size = totals.least.shape, totals.least.size
    counts = np.stack(
        [totals.sketch.times_of(float(j), size).reshape(shape)[i] for j in range(len(description.classes))]
    )
    whole = counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, counts.max(axis=0) / whole, np.nan)
    return np.where(whole > 0, counts.argmax(axis=0).astype(float), np.nan), share
