"""A corpus for every case and every optional part of what `corpus` says."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import made_corpus as made
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.results import Corpus
from attnscope.verbs.corpus import words_sheet as corpus_words
from attnscope.verbs.corpus.result import Case

SAID, CASES = corpus_words.said, Case


def having(result: Corpus, name: str, values: np.ndarray, *halves: np.ndarray) -> Corpus:
    """The corpus with these means in 41 texts, in both halves if there are no others; errors are .02."""
    own, nowhere = result.measures[name], np.isnan(values)
    changed = replace(
        own,
        scores=replace(own.scores, values=values),
        error=np.where(nowhere, np.nan, 0.02),
        count=np.where(nowhere, 0.0, float(result.read.texts)),
        halves=np.array(halves or (values, values)),
        quantiles=np.stack([values] * 5),
    )
    return replace(result, measures={**result.measures, name: changed})


def flat(value: float, **places: float) -> np.ndarray:
    """Every head has `value`, but for those named by their row and column: `at01=.3`."""
    values = np.full((3, 4), value)
    for name, own in places.items():
        values[int(name[2]), int(name[3])] = own
    return values


LESS = flat(np.log(8.0), at12=np.log(1.5))  # L1 H3 looks at fewest tokens, all others at 8
OTHER = flat(np.log(8.0), at20=np.log(2.5))  # L3 H0 does
NOTHING = np.full((3, 4), np.nan)


def of_texts(count: int, result: Corpus) -> Corpus:
    return replace(result, read=replace(result.read, texts=count))


def focused(*halves: np.ndarray, previous: float = 0.1, texts: int = 41) -> Corpus:
    result = having(of_texts(texts, made.corpus()), "entropy", LESS, *halves)
    return having(result, "previous", flat(0.7, at12=previous))


def measured(name: str, values: np.ndarray, *halves: np.ndarray) -> Corpus:
    found = made.corpus()
    found = replace(found, measures={**found.measures, name: found.measures.get(name, found.main)})
    return replace(having(found, name, values, *halves), shown=name)


def gaining(heads: int, gain: float, texts: int = 41) -> Corpus:
    """So many of 12 heads gain, and the others lose, with an error of .02 and the same on both halves."""
    values = np.where(np.arange(12) < heads, gain, -gain).reshape(3, 4)
    result = having(of_texts(texts, made.linked()), "link-gain", values)
    return having(having(result, "link", flat(0.3)), "link-distance", flat(0.2))


def one_head(result: Corpus) -> Corpus:
    values = np.where(np.arange(12).reshape(3, 4) == 6, result.main.values, np.nan)
    return having(result, result.main.scores.measure, values)


def aside(reasons: Mapping[str, int], **read: int) -> Corpus:
    result = focused()
    return replace(result, read=replace(result.read, set_aside=reasons, **read))


def absent(why: str) -> Corpus:
    result = having(made.corpus(), "previous", NOTHING)
    own = result.measures["previous"]
    own = replace(own, scores=replace(own.scores, absent=why))
    return replace(result, measures={"previous": own})


EXAMPLES: dict[str, Callable[[], Corpus] | tuple[Callable[[], Corpus], Focus]] = {
    "strongest": focused,
    "strongest, by place": partial(focused, previous=0.6),
    "strongest, of few texts": partial(focused, texts=9),
    "strongest, one head": lambda: one_head(focused()),
    "strongest, in nats": (focused, Focus(in_nats=True)),
    "strongest, measured": partial(measured, "previous", flat(0.1, at12=0.6, at20=0.3)),
    "strongest, measured in one head": lambda: one_head(measured("previous", flat(0.6))),
    "cannot tell": partial(focused, LESS, OTHER),
    "cannot tell, in nats": (partial(focused, LESS, OTHER), Focus(in_nats=True)),
    "cannot tell, measured": partial(measured, "previous", *[flat(0.1, at12=0.6)] * 2, flat(0.1, at00=0.7)),
    "cannot tell, of one text": partial(focused, LESS, NOTHING, texts=1),
    "classes": lambda: replace(made.corpus(), shown="pattern"),
    "unranked": lambda: having(made.corpus(), "entropy", NOTHING),
    "unranked, why": partial(absent, "a query may not look back"),
    "linked": partial(gaining, 2, 0.1),
    "linked, one head": partial(gaining, 1, 0.1, 8),
    "all heads link": partial(gaining, 6, 0.1),
    "cannot tell, of a link": partial(gaining, 2, 0.03),
    "cannot tell, of a link in one half": lambda: having(
        gaining(2, 0.1), "link-gain", flat(-0.1, at00=0.1), flat(-0.1, at00=0.1), NOTHING
    ),
    "unranked, of a link": lambda: having(gaining(2, 0.1), "link-gain", NOTHING),
    "set aside": partial(
        aside, dict.fromkeys(("it is empty", "b", "c", "d", "e"), 2), cut=0, blanks=0, padded=0
    ),
    "read alone": lambda: replace(made.corpus(), held=0),
    "held in some queries": lambda: replace(made.corpus(), held=16, untried=4),
    "tagged": lambda: replace(made.corpus(), read=replace(made.corpus().read, files=("dev.conllu",))),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "strongest": (Case.STRONGEST, "L1 H3", "12 heads", "41 texts", "1.5 of up to 64", "head: 8)"),
    "strongest, by place": (Case.STRONGEST, "token before gets .60", "the place alone"),
    "strongest, of few texts": (Case.STRONGEST, "only 9 texts"),
    "strongest, in nats": (Case.STRONGEST, "L1 H3", ".41", "2.08"),
    "strongest, measured": (Case.STRONGEST, "L1 H3", "12 heads", ".60", "41 texts", ".10"),
    "strongest, measured in one head": (Case.STRONGEST, "L1 H3", ".60", "previous"),
    "cannot tell": (Case.CANNOT_TELL, "12 heads", "41 texts", "L1 H3 (about 1.5", "L3 H0 (about 2.5"),
    "cannot tell, measured": (Case.CANNOT_TELL, "L1 H3 (.60)", "L0 H0 (.70)"),
    "cannot tell, of one text": (Case.CANNOT_TELL, "L1 H3", "1.5", "One text"),
    "classes": (Case.CLASSES, "of 12 heads", "41 texts"),
    "unranked": (Case.UNRANKED, "12 heads"),
    "unranked, why": (Case.UNRANKED, "12 heads", "a query may not look back"),
    "linked": (Case.LINKED, "L0 H0", "VERB", "NOUN", ".30", ".20", "41 texts", "+.100 ±.020", "2 of 12"),
    "all heads link": (Case.ALL_LINK, "L0 H0", ".30", ".20", "6 of 12", "NOUN"),
    "cannot tell, of a link": (Case.CANNOT_TELL, "VERB", "NOUN", "+.030 ±.020"),
    "unranked, of a link": (Case.UNRANKED, "VERB", "NOUN"),
}
