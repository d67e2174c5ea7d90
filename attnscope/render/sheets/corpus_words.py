"""What `corpus` says of a result, in the words of `words/corpus.jinja`."""

from collections import Counter
from functools import partial

import numpy as np

from attnscope.printable import word
from attnscope.render.kit.numbers import give_or_take, percent, with_error
from attnscope.render.kit.words.command import asking
from attnscope.render.sheet import measured
from attnscope.render.sheet.said import in_sample, named
from attnscope.render.sheet.sheet import Next
from attnscope.render.sheets.looking import many
from attnscope.render.words import Said
from attnscope.results import Corpus
from attnscope.results.claims.corpus import DISTANCE_ALONE, GAIN, LINK, Case, CorpusRead

FLOOR = 10  # texts: of fewer the answer says that they are few
_HALF = 0.5  # of a head's attention: one that gives so much to one place can do so by place alone
_PLACES = ("previous", "next", "self", "first")
_REASONS = 3
error = partial(give_or_take, decimals=None)


def said(result: Corpus, in_nats: bool = False) -> Said:
    """The words of `corpus` about this result, whose entropy counts tokens unless it is wanted `in_nats`."""
    tokens = result.main.scores.measure == "entropy" and not in_nats
    scores, read = result.measure(GAIN) if result.linked else result.main, result.read
    described, order, best = scores.scores.description, measured.ranked(scores.scores), scores.strongest
    classes = Counter(scores.scores.class_of(*place) for place in order).most_common(1)
    source, target = result.linked or (None, None)
    held, reasons = result.held_out if result.linked else None, list(read.set_aside.items())

    def written(value: float) -> str:
        return many(float(np.exp(value))) if tokens else measured.written(scores.scores, value)

    def of_best(measure: str) -> float | None:
        return float(result.measure(measure).values[best]) if measure in result.measures and best else None

    every, form = (scores.values, written) if scores.agreement is None else (scores.agreement, percent)
    parts = zip(scores.strongest_of_halves, scores.halves, strict=True)
    halves = [(named(result, head), written(float(half[head]))) for head, half in parts if head]
    places = [(share, each) for each in _PLACES if (share := of_best(each)) and share >= _HALF]
    share, place = max(places, default=(None, None))
    facts = {
        # what was measured
        "name": read.name,
        "tokens": tokens,
        "measure": described.name,
        "label": described.title,
        "amount": described.label or described.name,
        "unit": described.unit,
        "end": "least" if described.strong == "low" else "most",
        "source": source,
        "target": target,
        "absent": scores.absent,
        "size": scores.values.size,
        # what came out
        "heads": len(order),
        "best": best and named(result, best),
        "own": best and written(float(scores.values[best])),
        "middle": form(float(np.nanmedian(every))) if len(order) > 1 else None,
        "common_class": classes[0][0] if classes else None,
        "common_heads": classes[0][1] if classes else None,
        "place": place if tokens else None,
        "place_share": share,
        "texts": best and int(scores.count[best]),
        "few": read.texts < FLOOR,
        "halves": halves if len(halves) > 1 else None,
        # of a link
        "linking": of_best(LINK),
        "alone": of_best(DISTANCE_ALONE),
        "gaining": int((scores.values > 0).sum()),
        "held": held and with_error(*held),
        # what was read
        "read": read,
        "longest": f"{read.longest:,}",
        "set_aside": [(count, _reason(read, why)) for why, count in reasons[:_REASONS]],
        "other_reasons": sum(count for _, count in reasons[_REASONS:]),
        # what is proved
        "same_alone": in_sample(result.unlike) if result.held else None,
        "held_queries": result.held if 0 < result.held < result.queries else None,
    }
    return Said("corpus", result, facts)


def _reason(read: CorpusRead, why: str) -> str:
    return why.replace("the tokens that are read", f"{read.limit:,} tokens") if read.limit else why


def following(result: Corpus, say: Said) -> Next | None:
    """The other way round of a link; of a corpus with parts of speech a link; else how much is a sink."""
    if result.case is Case.UNRANKED:
        return None
    if result.linked is not None:
        pair = tuple(map(word, result.linked))
        asked = asking(result, "corpus", "--from-pos", pair[1], "--to-pos", pair[0])
        return Next(say("other_way"), asked)
    if result.read.tagged:
        asked = asking(result, "corpus", "--from-pos", "VERB", "--to-pos", "NOUN")
        return Next(say("parts_of_speech"), asked)
    if len(result.measures) > 1:
        return Next(say("a_sink"), asking(result, "corpus", "--measure", "sink"))
    return Next(say("all_measures"), asking(result, "corpus"))
