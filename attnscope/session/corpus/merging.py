"""The parts of a run, in their order, to one result."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from attnscope.analysis.corpus.scored import scores
from attnscope.results import Kind, Verdict
from attnscope.results.base.origin import Provenance
from attnscope.results.claims.corpus import Corpus, CorpusRead
from attnscope.results.stored.codec import Place, decode
from attnscope.session.corpus.engine.interface import SetAside
from attnscope.session.corpus.part import Part
from attnscope.session.corpus.source import Source
from attnscope.session.corpus.splits import placed
from attnscope.session.verbs.corpus import Linked

_LONG = "longer than the tokens that are read"


@dataclass
class Merged:
    """All parts as one, and what was set aside by its reason."""

    whole: Part
    aside: Counter[str]


def merged(parts: Iterable[Part]) -> Merged:
    """Those of a run, which come in their order."""
    aside: Counter[str] = Counter()
    whole: Part | None = None
    for part in parts:
        aside.update(reason_of(each) for each in part.set_aside)
        bare = replace(part, set_aside=())  # which may be many
        whole = bare if whole is None else whole.merged(bare)
    assert whole is not None, "there is a part"
    return Merged(whole, aside)


def reason_of(aside: SetAside) -> str:
    """Why, without what differs from text to text."""
    return _LONG if "tokens" in aside.why and "reads at most" in aside.why else aside.why


def with_limit(why: str, limit: int | None) -> str:
    """The reason, with the number of tokens where it is that of texts that are too long."""
    return f"longer than {limit:,} tokens" if why == _LONG and limit else why


def result(
    found: Merged, sources: Sequence[Source], digests: Sequence[str], linked: Linked | None, shown: str
) -> Corpus:
    """The result of a whole corpus."""
    whole, proved = found.whole, found.whole.proved
    assert proved.provenance is not None, "every part says where it comes from"
    pair = None if linked is None else (linked.source, linked.target)
    axes = whole.measures, whole.layers, whole.heads
    totals = whole.totals.moved(partial(_file, sources))
    notes = () if not whole.absent else (f"{', '.join(whole.absent)}: {next(iter(whole.absent.values()))}",)
    return Corpus(
        read=CorpusRead(
            files=tuple(source.name for source in sources),
            digests=tuple(digests),
            texts=whole.texts,
            tokens=whole.tokens,
            longest=whole.longest,
            blanks=whole.blanks,
            set_aside=dict(found.aside.most_common()),
            padded=whole.padded,
            cut=whole.cut,
            unknown=whole.unknown,
            limit=whole.limit,
        ),
        kind=Kind(whole.kind),
        layers=whole.layers,
        heads=whole.heads,
        measures=scores(totals, axes, whole.absent, whole.longest, pair),
        certified={Verdict(name): count for name, count in proved.certified.items()},
        sampled=proved.sampled,
        unlike=proved.unlike,
        held=proved.held,
        queries=proved.queries,
        untried=proved.untried,
        provenance=decode(Provenance, dict(proved.provenance), Place("provenance", None, {})),
        texts=tuple(totals.outer.texts.values()),
        lengths=totals.lengths.described(),
        tower=whole.tower,
        shown=shown,
        linked=pair,
        notes=(*notes, *proved.beside),
        failed=tuple(f"{placed(sources[each.source].name, each.line)}: {each.why}" for each in proved.failed),
    )


def _file(sources: Sequence[Source], place: str) -> str:
    source, line = map(int, place.split(":"))
    return placed(sources[source].name, line)
