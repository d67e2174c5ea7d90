"""Chunks in the order of their numbers to one result: so totals are the same whoever measured, and when."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from attnscope.analysis.corpus.scored import scores
from attnscope.analysis.corpus.totals import Totals
from attnscope.results import Kind, Verdict
from attnscope.results.base.origin import Provenance
from attnscope.results.claims.corpus import Corpus, CorpusRead
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
    last, totals, proved = whole.last, whole.totals, whole.proved
    assert last is not None, "there is a chunk"
    assert totals is not None, "there is a chunk"
    assert proved.provenance is not None, "every chunk says where it comes from"
    pair = None if linked is None else (linked.source, linked.target)
    axes = last.measures, last.layers, last.heads
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
        measures=scores(totals, axes, whole.absent, whole.longest, pair),
        certified={Verdict(name): count for name, count in proved.certified.items()},
        sampled=proved.sampled,
        unlike=proved.unlike,
        provenance=decode(Provenance, dict(proved.provenance), Place("provenance", None, {})),
        texts=tuple(totals.outer.texts.values()),
        lengths=totals.lengths.described(),
        tower=last.tower,
        shown=shown,
        linked=pair,
        notes=notes,
    )
