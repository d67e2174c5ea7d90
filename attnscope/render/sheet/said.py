"""Phrases that several sheets share."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from attnscope.errors import listed
from attnscope.printable import printable
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import Run
from attnscope.render.kit.numbers import counted, significant
from attnscope.render.kit.words import (
    CROSS_ROWS,
    GLYPHS,
    WITHOUT_SPECIAL,
    attention_words,
    certificate_line,
    certificate_words,
    feature_words,
    joined_words,
    model_words,
    quoted,
    special_words,
    verdict_words,
    written_words,
)
from attnscope.render.look import look_now
from attnscope.results import Certificate, HeadWeights, Kind, Overview, Special, Verdict
from attnscope.results.heads import head_name
from attnscope.results.steps import Check
from attnscope.tokens import Patches, Tokens
from attnscope.vocabulary import Unit

Place = tuple[int, int]
_EQUAL = "recomputed, equal to the model's"  # meaning of certified in the short line of proof
_MARK = re.compile(r"\[\w+\]|<\|?\w+\|?>")  # [MASK], <mask>, <|im_start|>


def name(layer: int, head: int) -> str:
    return head_name(layer, head)


def attention(kind: Kind, tower: str) -> str:
    """`encoder self-attention`, with the model part where the kind does not tell."""
    return attention_words(kind) + (f" of {printable(tower)}" if tower else "")


class Attended(Run, Protocol):
    """Protocol of a result about one attention tower of one model."""

    @property
    def kind(self) -> Kind: ...

    @property
    def tower(self) -> str: ...


def setting(result: Attended, *before: str) -> str:
    """Attention and model in words: `3 layers x 4 heads · encoder self-attention · bert-base-uncased`."""
    own = attention(result.kind, result.tower), model_words(result.provenance)
    return " · ".join((*before, *own))


class OfHeads(Protocol):
    """Protocol of a result with layers and heads."""

    @property
    def layers(self) -> Sequence[int]: ...

    @property
    def heads(self) -> Sequence[int]: ...


def named(result: OfHeads, place: Place) -> str:
    """`L3 H11`: the head at this row and column."""
    return name(result.layers[place[0]], result.heads[place[1]])


def grid_size(layers: Iterable[int], heads: Iterable[int]) -> str:
    return f"{counted(len(tuple(layers)), 'layer')} x {counted(len(tuple(heads)), 'head')}"


def read(kind: Kind, queries: Tokens, keys: Tokens) -> tuple[str, ...]:
    """The text in quotes, or both sides of cross-attention; empty for a picture or a sound."""
    if kind is Kind.CROSS and keys.texts:
        return f"query {quoted(queries).plain}", f"key {quoted(keys).plain}"
    return text(queries)


def text(tokens: Tokens) -> tuple[str, ...]:
    """The text in quotes; empty for a picture or a sound."""
    return (quoted(tokens).plain,) if tokens.texts else ()


def unit(tokens: Tokens) -> str:
    """The unit of a position: `token`, `patch`, `frame`."""
    stretch = next(iter(tokens.stretches), None)
    return "token" if stretch is None else "patch" if isinstance(stretch, Patches) else "frame"


def messages(tokens: Tokens) -> str:
    """Positions of a chat's messages, `system 0-8, user 9-18`; empty for any other text."""
    return ", ".join(f"{settled(each.name)} {_extent(tokens, each.positions)}" for each in tokens.sections)


def _extent(tokens: Tokens, places: Sequence[int]) -> str:
    first, behind = tokens.positions[places[0]], places[-1] + 1
    last = tokens.positions[behind] - 1 if behind < len(tokens) else tokens.positions[places[-1]]
    return f"{first}-{last}" if last > first else str(first)


def reading_notes(kind: Kind, queries: Tokens) -> tuple[str, ...]:
    """Notes on cross-attention rows and on generated text."""
    return tuple(each for each in (CROSS_ROWS if kind is Kind.CROSS else "", written_words(queries)) if each)


class Noted(Attended, Protocol):
    """Protocol of a result about heads, with notes of its own."""

    @property
    def query_tokens(self) -> Tokens: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


def limits(result: Noted) -> tuple[str, ...]:
    """Notes on reading the rows, then the result's own notes."""
    return (*reading_notes(result.kind, result.query_tokens), *result.notes)


def patch_words(*sides: Tokens) -> Iterator[str]:
    """Legend of `r3c5`, where some tokens are patches of a picture."""
    stretches = (each for tokens in sides for each in tokens.stretches)
    if any(isinstance(each, Patches) for each in stretches):
        yield "r3c5: patch row 3, column 5 of the picture, both from 0 at the top left"


def features(result: HeadWeights | Overview) -> tuple[str, ...]:
    """Features that set heads apart from plain attention, without those among the notes."""
    told = limits(result)
    every = *feature_words(result), *patch_words(result.query_tokens, result.key_tokens)
    return tuple(each for each in every if each not in told)


def departures(by: Unit, special: Special) -> tuple[str, ...]:
    """View options that are not the default, for the line of proof."""
    left = {Special.HIDE: "special tokens hidden", Special.RENORMALISE: "rows without special tokens"}
    return tuple(each for each in (f"by {by.several}" if by.joins else "", left.get(special, "")) if each)


def view_notes(by: Unit, special: Special) -> Iterator[str]:
    """Notes on joined tokens and on special tokens that are left out."""
    if by.joins:
        yield joined_words(by)
    if special is Special.RENORMALISE:
        yield WITHOUT_SPECIAL
    elif special is Special.HIDE:
        yield "special tokens left out, rows keep what they hold"


def in_sentence(tokens: Tokens, position: int) -> str:
    """A token in a sentence: `“door”`, `“the”@7`, `[MASK]`, `patch row 3, column 5`."""
    token, name = tokens.items[position], tokens.names[position]
    if (called := tokens.called(position)) != name:
        return called
    where = tokens.labels[position].removeprefix(name)
    placed = any(position in stretch.positions for stretch in tokens.stretches)
    placed = placed or any(
        each.positions == (position,) and name.startswith(each.called) for each in tokens.sections
    )
    if token.special or token.unknown or placed or _MARK.fullmatch(name) or not tokens.texts:
        return settled(name + where)
    return f"“{settled(name)}”{where}"


def span_notes(asked: str, queries: Sequence[int], given: str, keys: Sequence[int]) -> Iterator[str]:
    """Notes on weights from or to several tokens named together; `queries`, `keys` are positions."""
    if len(queries) > 1:
        yield f"weights from {asked} are the mean over its tokens {listed(queries)}{_marks(asked)}"
    if len(keys) > 1:
        yield f"weights to {given} are the sum over its tokens {listed(keys)}{_marks(given)}"


def _marks(named: str) -> str:
    return ", the template's marks around the message among them" if named.startswith("role:") else ""


def at(tokens: Tokens, position: int, span: Sequence[int] = ()) -> str:
    """Position and name, `5 [MASK]`; for several tokens, at the positions `span`, `4-5 the door`."""
    return f"{listed(span or [tokens.positions[position]])} {settled(tokens.called(position))}"


def marked_word(before: str, word: str, after: str) -> str:
    """`the «bank» of`: a word within its text."""
    return f"{printable(before)}«{printable(word)}»{printable(after)}"


def numbered(tokens: Tokens, positions: Sequence[int], longest: int = 1000) -> tuple[str, ...]:
    """Row names with aligned positions, ` 5 [MASK]`, `12 it`, each name cut to `longest` cells."""
    digits = max((len(str(tokens.positions[i])) for i in positions), default=0)
    names = (settled(fit(tokens.called(i), longest)) for i in positions)
    return tuple(f"{tokens.positions[i]:>{digits}} {name}" for i, name in zip(positions, names, strict=True))


def proof(
    verdicts: Iterable[Verdict] | Mapping[Verdict, int], of: str, more: str = "", what: str = ""
) -> tuple[tuple[Verdict, str], ...]:
    """Lines with the count of each verdict: `✓ certified: 48 of 48 heads recomputed, equal to the model's`.

    Verdicts come one by one or as counts; `more` is appended. `what` names the certified part where that is
    not all: `certified: the rows asked about in 48 of 48 heads recomputed, ...`.
    """
    count = Counter[Verdict](verdicts)
    total = counted(count.total(), of)
    held = {Verdict.CERTIFIED: f" {_EQUAL}"}
    return tuple(
        (each, f"{verdict_words(each)}: {what}{count[each]:,} of {total}{held.get(each, '')}{more}")
        for each in Verdict
        if count[each]
    )


def proof_in(
    sampled: int, among: str, certified: Mapping[Verdict, int], known: str
) -> tuple[tuple[Verdict, str], ...]:
    """Lines for heads certified in some texts: `72 of 72 heads recomputed, ..., in each of 2 of 300 texts`.

    The counts in `certified` are of heads times texts. Different verdicts are listed with these counts.
    """
    counts = {verdict: count for verdict, count in certified.items() if count}
    if not counts:
        none = Verdict.UNCERTIFIED
        return ((none, f"{verdict_words(none)}: no head was recomputed in any of {among}"),)
    if len(counts) == 1 and sampled > 1:
        ((verdict, count),) = counts.items()
        return proof({verdict: count // sampled}, "head", f", in each of {sampled} of {among}; {known}")
    each = ", each text counted" if sampled > 1 else ""
    return proof(counts, "head", f"{each}, in {sampled} of {among}; {known}")


def in_sample(unlike: float) -> str:
    """Phrase for the difference between weights read alone and in a batch."""
    alike = f"to {significant(unlike, 1)}" if unlike else "to the last bit"
    return f"read alone, these give the same weights {alike}"


def certified(certificate: Certificate, full: bool = False) -> tuple[tuple[Verdict, str], ...]:
    """The proof of one head: short, unless `full` or the caption is."""
    full = full or look_now().in_full
    told, own = certificate_line(certificate, full=full).plain, verdict_words(Verdict.CERTIFIED)
    told = told if full else told.replace(own, f"{own}: {_EQUAL}", 1)
    return ((certificate.verdict, told),)


def of_head(head: HeadWeights) -> tuple[tuple[str, object], ...]:
    """Record of a head for a file: name, module, special tokens' share and certificate."""
    told = {
        "name": head.name,
        "kind": head.kind.value,
        "tower": head.tower,
        "layer": head.layer,
        "head": head.head,
        "block": head.block,
        "module": head.module,
        "special tokens": special_words(head.special_mass),
        "certificate": certificate_words(head.certificate),
    }
    return tuple((name, value) for name, value in told.items() if value != "")


def checked(check: Check) -> tuple[Verdict, str]:
    """Verdict and line of a check that computes the same numbers in two ways."""
    differ = f"off {significant(check.difference)} (tolerated {significant(check.tolerance)})"
    return check.verdict, f"{GLYPHS[check.verdict]} {check.what}: {differ}"
