"""The results of `align`: links between the words of two texts, or times of the words of a sound.

A decoder's row writes the token behind it: the weights of a word are those of the rows that write its pieces.
Every head has a weight of its own in the answer, and the answer stands beside what is known: gold, or that
the heads agree more than they would with the words of each in another order.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, fits, one_for_each, within
from attnscope.results.heads import Placed
from attnscope.results.media import Sound
from attnscope.tokens import Frames, Token, Tokens

LEVEL = 0.05  # how often heads may agree so much by chance
LEAST = 0.25  # of what shuffled ones agree with, by which they agree more where that says anything
SURE = 0.5  # a link is one that is more likely right than not
_FEW = 2  # words, whose orders are too few to tell from one another


class Case(StrEnum):
    """Outcomes of an alignment: judged by gold, else whether heads agree."""

    JUDGED = "judged"
    NO_LINK = "no link"
    AGREE = "agree"
    ONE_HEAD = "one head"
    FEW_WORDS = "few words"
    NOTHING = "nothing"


class Weighing(StrEnum):
    """Source of the heads' shares: sharpness, the model's config, gold, or the user."""

    SHARPNESS = "sharpness"
    MODEL = "model"
    LEARNT = "learnt"
    GIVEN = "given"


class Direction(StrEnum):
    """From which side a link is the strongest: from the target's word, the source's, or both."""

    BOTH = "both"
    TARGET = "target"
    SOURCE = "source"


@dataclass(frozen=True)
class Weighed(Placed):
    """A head (`layer`, `head`) and its `share` of the answer; the shares of all heads sum to 1."""

    layer: int
    head: int
    share: float


@dataclass(frozen=True)
class Reliability:
    """Of answers with a confidence from `low` to `high`, the share that is right.

    `said` is the mean confidence of these, `right` the share that is right, `count` how many they are. From
    `right_low` to `right_high` lies that share, with 95 % certainty.
    """

    low: float
    high: float
    count: int
    said: float
    right: float
    right_low: float
    right_high: float


@dataclass(frozen=True)
class LinkScore:
    """Scores of one way to link words against gold (Och and Ney 2003).

    `name` is the way. `precision` is the share of its links that gold has, `recall` the share of gold's sure
    links that it has, `error` the alignment error rate. `found` is the share of target words, of those linked
    in gold, whose strongest source is one of gold's. `links` is its mean number of links in a pair.
    """

    name: str
    precision: float
    recall: float
    error: float
    found: float
    links: float


@dataclass(frozen=True)
class TimeScore:
    """Errors of one way to time words against gold, in milliseconds.

    `name` is the way. `begin_median` and `end_median` are the median errors of begins and ends, `begin_most`
    and `end_most` the 90th percentiles, `begin_within` and `end_within` the shares of at most 100 ms.
    """

    name: str
    begin_median: float
    begin_most: float
    begin_within: float
    end_median: float
    end_most: float
    end_within: float


@dataclass(frozen=True)
class Judged:
    """Scores against gold on `cases` sentence pairs or sounds of the file `name`; the answer's way is first.

    `words` is the number of their words, `scores` has one entry for each way. `held_out` says whether each
    case was judged by heads learnt on others of these cases. `skipped` cases could not be read, of the others
    `certified` are certified in full. `reliability` is the calibration of confidences, empty without any.
    """

    name: str
    cases: int
    words: int
    held_out: bool
    scores: tuple[LinkScore | TimeScore, ...]
    reliability: tuple[Reliability, ...]
    skipped: int = 0
    certified: int = 0

    @property
    def own(self) -> Any:
        """The score of the answer's own way."""
        return self.scores[0]

    @property
    def others(self) -> tuple[Any, ...]:
        """The scores of the other ways."""
        return self.scores[1:]


@dataclass(frozen=True)
class WordLink:
    """The target's word `query` stands for the source's word `key`, both counted in words.

    `strength` is how much the heads say so, 0 to 1. `confidence` is the probability that the link is right,
    None where it was not calibrated on gold. `direction` is the side from which the link is the strongest.
    `gold` is `sure`, `possible` or `none`, None where it is not known.
    """

    query: int
    key: int
    strength: float
    confidence: float | None
    direction: Direction
    gold: str | None = None


@dataclass(frozen=True)
class WordTime:
    """When a word is heard, from `begin` to `end` in seconds; in gold from `gold_begin` to `gold_end`.

    `strength` is the share of the word's weight on the sound that lies between its begin and its end.
    `confidence` is the probability that the begin lies within 100 ms of the true one.
    """

    begin: float
    end: float
    strength: float
    confidence: float | None
    gold_begin: float | None = None
    gold_end: float | None = None


class _OfHeads(Presented):
    """Fields and tests that `Alignment` and `Timing` share: weighed heads, controls, verdicts."""

    kind: Kind
    query_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weighed: tuple[Weighed, ...]
    shuffled: Float[np.ndarray, " draw"]
    verdicts: tuple[tuple[Verdict, ...], ...]
    judged: Judged | None
    agreement: float

    @property
    def case(self) -> Case:
        """The outcome: judged by gold, else whether heads agree."""
        if self.judged is not None or self.tells:
            return Case.AGREE if self.judged is None else Case.JUDGED
        if len(self.weighed) == 1:
            return Case.ONE_HEAD
        return Case.NOTHING if len(self.query_tokens) > _FEW else Case.FEW_WORDS

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head that has a share."""
        used = {(each.layer, each.head) for each in self.weighed}
        return worst(
            verdict
            for layer, row in zip(self.layers, self.verdicts, strict=True)
            for head, verdict in zip(self.heads, row, strict=True)
            if (layer, head) in used
        )

    @property
    def p(self) -> float:
        """The p-value: (1 + shuffled controls with as much agreement) / (1 + controls)."""
        return float((1 + (self.shuffled >= self.agreement).sum()) / (len(self.shuffled) + 1))

    @property
    def tells(self) -> bool:
        """Whether heads agree more than shuffled ones, with p at most 0.05 and by a quarter or more."""
        return self.p <= LEVEL and self.agreement >= (1 + LEAST) * float(self.shuffled.mean())

    @property
    def calibrated(self) -> bool:
        """Whether confidences were calibrated on gold."""
        return self.judged is not None and bool(self.judged.reliability)

    def _check_heads(self) -> None:
        one_for_each(self.verdicts, (len(self.layers), len(self.heads)), "verdicts")
        fits(bool(self.weighed), "'weighed' are no heads")
        for each in self.weighed:
            there = each.layer in self.layers and each.head in self.heads
            fits(there, "'weighed' are not all of these heads")


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(_OfHeads):
    """Links between the words of two texts: `query_tokens` are the target's words, `key_tokens` the source's.

    `strengths` are those of all word pairs, `links` the answered pairs, `without_link` the target's words
    that have none. `weighing` is where the shares of the heads in `weighed` come from, `learnt_on` the file
    of gold. `agreement` is the mean over target words of their largest strength; `shuffled` are agreements in
    controls, where each head's target words are permuted, drawn with seed 0. `even` is the weight of a source
    word under even attention. `judged` are the scores against gold.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weighing: Weighing
    weighed: tuple[Weighed, ...]
    strengths: Float[np.ndarray, "query key"]
    links: tuple[WordLink, ...]
    agreement: float
    shuffled: Float[np.ndarray, " draw"]
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    judged: Judged | None = None
    learnt_on: str = ""
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "p", "tells", "without_link", "even", "pharaoh")

    @property
    def case(self) -> Case:
        """The outcome: no link, judged by gold, or whether heads agree."""
        return super().case if self.links else Case.NO_LINK

    @property
    def without_link(self) -> tuple[int, ...]:
        """The target's words that have no link."""
        linked = {link.query for link in self.links}
        return tuple(i for i in range(len(self.query_tokens)) if i not in linked)

    @property
    def even(self) -> float:
        """The weight of a source word under even attention."""
        return 1 / len(self.key_tokens)

    @property
    def pharaoh(self) -> str:
        """The links in Pharaoh's form, `0-0 1-2`: source and target, from 0."""
        return " ".join(f"{k}-{q}" for k, q in sorted((link.key, link.query) for link in self.links))

    def check_parts(self) -> None:
        self._check_heads()
        shape = len(self.query_tokens), len(self.key_tokens)
        fits(self.strengths.shape == shape, "'strengths' are not one for each pair of words")
        for link in self.links:
            there = within(link.query, shape[0]) and within(link.key, shape[1])
            fits(there, "'links' are not all between words")


@dataclass(frozen=True, eq=False, repr=False)
class Timing(_OfHeads):
    """When each spoken word is heard: `times`, one for each of the `query_tokens`, which are words.

    `rows` are the weights of each word over the frames of the `sound`, `frame_seconds` of them apart. `width`
    is the width of the median filter in frames. `weighing` is where the shares of the heads in `weighed` come
    from, `learnt_on` the file of gold. `agreement` is the mean over rows of the largest mixed weight;
    `shuffled` are agreements in controls, where each head's rows are permuted, drawn with seed 0. `judged`
    are the scores against gold.
    """

    kind: Kind
    query_tokens: Tokens
    sound: Sound
    seconds: float = field(metadata={"file": "frame_seconds"})
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weighing: Weighing
    weighed: tuple[Weighed, ...]
    rows: Float[np.ndarray, "word frame"]
    times: tuple[WordTime, ...]
    width: int
    agreement: float
    shuffled: Float[np.ndarray, " draw"]
    verdicts: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance
    judged: Judged | None = None
    learnt_on: str = ""
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "p", "tells")

    @property
    def key_tokens(self) -> Tokens:
        """The sound's frames as tokens, named by their time."""
        frames = tuple(
            Token(-1, f"{i * self.seconds:.2f}s", "", None, None) for i in range(self.rows.shape[1])
        )
        return Tokens((), frames, (Frames(0, len(frames), self.seconds),))

    def check_parts(self) -> None:
        self._check_heads()
        fits(len(self.times) == len(self.query_tokens), "'times' are not one for each word")
        fits(len(self.rows) == len(self.query_tokens), "'rows' are not one for each word")
        for each in self.times:
            fits(0 <= each.begin <= each.end, "'times' do not go from a begin to an end")
