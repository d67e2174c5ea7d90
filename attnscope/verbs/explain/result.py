"""Result of `explain`: answers of several commands about one link between two tokens."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import log

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, fits
from attnscope.results.claims.effect import LITTLE
from attnscope.results.claims.ranking import DependsOn, Group, much
from attnscope.tokens import Tokens
from attnscope.verbs.ablate.result import Ablation
from attnscope.verbs.compose.result import Composition, Pair, Through
from attnscope.verbs.find.result import Finding
from attnscope.verbs.why.result import Case as WhyCase
from attnscope.verbs.why.result import Side, Why

Head = tuple[int, int]
HALF = log(2)  # nats that halve a probability
OF_SIDE = {Side.QUERY: Through.QUERY, Side.KEY: Through.KEY}  # the input that reads parts of a side
_WELL_TOLD = (WhyCase.BOTH, WhyCase.KEY, WhyCase.QUERY, WhyCase.SHARE, WhyCase.NONE, WhyCase.NOT_ABOVE)


class Asked(StrEnum):
    """Questions about a link, in the order of their answers."""

    LOOK = "which heads look there?"
    MATTER = "does the answer need these heads?"
    LINK = "does the answer need the link itself?"
    WHY = "why does the head look there?"
    READ = "which earlier heads does it read?"
    WORD = "does the answer depend on the word at all?"


class Case(StrEnum):
    """Which conclusion the explanation allows."""

    CIRCUIT = "because of earlier heads"
    SHOWN = "heads look there"
    NONE = "nothing shown"


class Need(StrEnum):
    """Dependence of the answer on the key word."""

    GAINS = "is likelier without"
    HARDLY = "hardly depends on"
    NEEDS = "needs"  # without it half of the probability or more is lost, and no other word costs as much
    LOSES = "is less likely without"


@dataclass(frozen=True)
class Unasked:
    """A question that this model or text cannot answer.

    `question` is the one that was left out. `reason` says what this model or this text lacks for it.
    """

    question: Asked
    reason: str


@dataclass(frozen=True)
class Lost:
    """Effect of replacing some tokens.

    `positions` are those that were replaced at once. `change` is the loss of the answer's log probability, in
    nats; for a model that answers nothing, 1 less the cosine of the query's last vector before and after.
    """

    positions: tuple[int, ...]
    change: float


@dataclass(frozen=True)
class Replaced:
    """Effects of replacing each key token in turn.

    `replacement` is the text put in their place. `answer` is the answer of the unchanged model, with that
    `probability`, empty where it answers nothing. `position` is that of an answered word, None for an answer
    about the whole text. `parts` are the losses by replaced tokens, the largest first.
    """

    replacement: str
    answer: str
    probability: float
    position: int | None
    parts: tuple[Lost, ...]

    def of(self, key: int) -> Lost | None:
        """Effect of replacing the token `key`; None where it was not replaced."""
        return next((part for part in self.parts if key in part.positions), None)

    def as_much(self, key: int) -> int:
        """Number of other tokens that cost at least as much as `key`."""
        own = self.of(key)
        return 0 if own is None else sum(other.change >= own.change for other in self.others(key))

    def others(self, key: int) -> tuple[Lost, ...]:
        """Effects of replacing any other token, the largest loss first."""
        return tuple(part for part in self.parts if key not in part.positions)


@dataclass(frozen=True)
class Read:
    """An earlier head whose output the lead head reads with its queries or keys.

    `pair` is the composition by the weights alone; it is `confirmed` where that head is a reason in this
    text.
    """

    side: Side
    pair: Pair
    confirmed: bool


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Presented):
    """Explanation of one link: which heads look, whether the answer needs them, and why they look.

    `finding` ranks all heads beside their controls. `heads` are the first of them, by layer and number, that
    give the key much more than even attention, which its position does not explain; the other questions are
    about these. `taken` has the answer without each of them and without all, `cut` the answer with this link
    cut in them. `whys` explain the scores of the first of them, `composition` has the earlier heads that the
    `lead` can read by its weights, and `replaced` is the answer without each word. Parts are None or missing
    where they were of no use or could not be computed; `unasked` are such questions, each with the reason.
    `paths` are the first heads that the lead reads by its queries and by its keys, with the answer when all
    `heads` no longer read them there (path patching).

    `lead` is the head that the answer describes: one with reasons, or the one that moves the answer most.
    `reads_confirmed` are earlier heads that it reads by its weights and that this text confirms.
    """

    finding: Finding
    heads: tuple[Head, ...]
    taken: Ablation | None
    cut: Ablation | None
    whys: tuple[Why, ...]
    composition: Composition | None
    replaced: Replaced | None
    unasked: tuple[Unasked, ...] = ()
    paths: tuple[Ablation, ...] = ()

    for_readers = ("verdict", "case", "lead", "reads_confirmed")

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all parts."""
        parts = (self.finding, self.taken, self.cut, *self.whys, self.composition, *self.paths)
        return worst(part.verdict for part in parts if part is not None and part.verdict is not None)

    @property
    def kind(self) -> Kind:
        """Kind of attention: encoder, decoder or cross."""
        return self.finding.kind

    @property
    def tower(self) -> str:
        """Part of the model that the layers belong to, empty where there is only one."""
        return self.finding.tower

    @property
    def provenance(self) -> Provenance:
        """The model and the run behind all parts."""
        return self.finding.provenance

    @property
    def query_tokens(self) -> Tokens:
        """Tokens on the query side."""
        return self.finding.query_tokens

    @property
    def key_tokens(self) -> Tokens:
        """Tokens on the key side."""
        return self.finding.key_tokens

    @property
    def query(self) -> int:
        """Position of the query token."""
        assert self.finding.question.query is not None, "a pair was sought"
        return self.finding.question.query

    @property
    def key(self) -> int:
        """Position of the key token."""
        assert self.finding.question.key is not None, "a pair was sought"
        return self.finding.question.key

    @cached_property
    def standing_out(self) -> tuple[Head, ...]:
        """Heads that stand out from their controls, the clearest first."""
        return named(self.finding, self.finding.evidence.of_group(Group.STANDS_OUT))

    @cached_property
    def told_of(self) -> Why | None:
        """The most informative explained score: with reasons, or of a head that moves the answer."""
        moved = {} if self.taken is None else {(e.layer, e.head): abs(e.change) for e in self.taken.heads}
        floor = 0.0 if self.taken is None else self.taken.floor.rounding

        def says(why: Why) -> tuple[bool, bool, int, float]:
            place = self.finding.layers.index(why.layer), self.finding.heads.index(why.head)
            above = self.finding.evidence.group(place) in (Group.STANDS_OUT, Group.ABOVE_ITS_OWN)
            change = moved.get((why.layer, why.head), 0.0)
            return _in_full(why), above, -_WELL_TOLD.index(why.case), change if change > floor else 0.0

        return max(self.whys, key=says, default=None)

    @property
    def lead(self) -> Head | None:
        """The head that the answer describes: the one of `told_of`, or else the first."""
        if self.told_of is not None:
            return self.told_of.layer, self.told_of.head
        return self.heads[0] if self.heads else None

    @property
    def circuits(self) -> tuple[Why, ...]:
        """Explained scores with an earlier head as a reason on both sides."""
        return tuple(filter(_in_full, self.whys))

    @property
    def case(self) -> Case:
        """Which conclusion the explanation allows."""
        if self.circuits:
            return Case.CIRCUIT
        return Case.SHOWN if self.standing_out else Case.NONE

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Earlier heads that the lead head reads by its weights, more than in random circuits."""
        made, told = self.composition, self.told_of
        if made is None or told is None:
            return ()
        found = []
        for side, through in OF_SIDE.items():
            if through not in made.through:
                continue
            reasons = {(part.layer, part.head) for part in told.reasons_of(side)}
            pairs = made.ranked(through, before=True)
            found += [Read(side, pair, pair.early in reasons) for pair in pairs if pair.stands_out]
        return tuple(found)

    @property
    def reads_confirmed(self) -> tuple[str, ...]:
        """Names of the heads in `reads` that this text confirms: `L0 H0 by key`."""
        return tuple(
            f"L{each.pair.early[0]} H{each.pair.early[1]} by {each.side}"
            for each in self.reads
            if each.confirmed
        )

    @property
    def need(self) -> Need | None:
        """Dependence of the answer on the key word, beside rounding and beside every other word.

        None where it was not replaced, or the model answers nothing.
        """
        own = None if self.replaced is None or not self.replaced.answer else self.replaced.of(self.key)
        if self.replaced is None or own is None:
            return None
        floor = max([LITTLE, *(each.floor.rounding for each in (self.taken, self.cut) if each is not None)])
        if abs(own.change) < floor:
            return Need.HARDLY
        if own.change < 0:
            return Need.GAINS
        return Need.NEEDS if own.change >= HALF and not self.replaced.as_much(self.key) else Need.LOSES

    def check_parts(self) -> None:
        question = self.finding.question
        fits(question.query is not None and question.key is not None, "'finding' is of no link")
        for layer, head in self.heads:
            there = layer in self.finding.layers and head in self.finding.heads
            fits(there, "'heads' are not all among those that were found")
        fits({(why.layer, why.head) for why in self.whys} <= {*self.heads}, "'whys' are of other heads")
        shown = None if self.composition is None else self.composition.shown
        fits(shown in (None, self.lead), "'composition' is of another head than the one that is told of")
        for part in self.replaced.parts if self.replaced is not None else ():
            inside = all(0 <= place < len(self.key_tokens) for place in part.positions)
            fits(inside and bool(part.positions), "'parts' has a position that is no token's")


def named(finding: Finding, places: tuple[tuple[int, int], ...]) -> tuple[Head, ...]:
    """Layer and head numbers at index pairs of `finding`."""
    return tuple((finding.layers[i], finding.heads[j]) for i, j in places)


def that_look(finding: Finding) -> tuple[Head, ...]:
    """Heads that give the key much more than even attention, not by its position, best evidence first.

    Whether they do so more than in other texts is what their controls say.
    """
    evidence, even = finding.evidence, finding.even_attention
    assert even is not None, "a pair has keys"
    there = (DependsOn.WORD, DependsOn.CONTEXT)
    return named(
        finding,
        tuple(
            place
            for place in finding.ranking
            if finding.weights[place] >= much(even[place]) and evidence.depends_on(place) in there
        ),
    )


def _in_full(why: Why) -> bool:
    return all(any(part.head is not None for part in why.reasons_of(side)) for side in Side)
