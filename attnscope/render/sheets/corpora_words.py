"""The words of two corpora: how many heads differ, by how much, and what the lengths of texts make of it."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.numbers import counted, number, percent, signed, with_error
from attnscope.render.sheet.heads import ordered
from attnscope.render.sheet.said import Place, begun, named
from attnscope.render.sheets.corpus_words import FLOOR
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpora import Case, ScoresApart
from attnscope.results.claims.lengths import FEWEST

_LONGER = 1.1  # times the length of the other's texts: what is told of two corpora
_MANY = 0.5  # of the texts: where fewer are compared the answer says so


def ranked(scores: ScoresApart) -> list[Place]:
    """Every head that has a difference, those first that differ by most errors of those that are needed."""
    return ordered(np.abs(scores.reached) / np.where(np.isnan(scores.limit), 1.0, scores.limit))


def answer(result: CorpusDifference, in_tokens: bool) -> str:
    """How many heads differ by more than chance can explain, and the one that does most."""
    scores, case = result.main, result.case
    if case is Case.UNRANKED:
        if np.nan_to_num(scores.difference).any():
            return "No head's difference can be held against chance: the texts of either are all alike."
        return "No head has a difference."
    heads, what = counted(len(ranked(scores)), "head"), scores.scores.description.title
    if in_tokens:
        what = "how many tokens they look at"
    if result.nothing:
        every = counted(len(result.measures), "measure")
        return f"Nothing differs between A and B: {every} of {heads}, to the last bit."
    if not np.nan_to_num(scores.difference).any():
        return f"The corpora are the same in {what}: no head differs at all."
    most = _most(result, ranked(scores)[0], in_tokens)
    at = "at equal length " if result.equal else ""
    if case is Case.ONE_HEAD:
        told = f"{most}. One head alone is compared, so nothing is chosen by luck."
    elif case is Case.ALIKE:
        told = f"{begun(f'{at}none')} of {heads} differs in {what} by more than chance can explain. {most}."
    else:
        differ = f"{len(scores.beyond)} of {heads} {'differs' if len(scores.beyond) == 1 else 'differ'}"
        told = f"{begun(f'{at}{differ}')} in {what} by more than chance can explain. {most}."
    return " ".join(each for each in (told, _lengths(result), _few(result)) if each)


def _most(result: CorpusDifference, best: Place, in_tokens: bool) -> str:
    scores = result.main
    write = in_tokens_of if in_tokens else thousandth
    first, second = (write(float(each[best])) for each in (scores.first, scores.second))
    change = with_error(float(scores.difference[best]), float(scores.error[best]))
    change = f"entropy {change} nats" if in_tokens else change
    alone = "differs" if result.case is Case.ONE_HEAD else "differs most"
    errors = number(abs(float(scores.reached[best])), 1)
    told = f"{change}, {errors} standard errors"
    if result.case is not Case.ONE_HEAD:
        told += f" where {number(float(scores.limit[best]), 1)} are needed"
    if result.equal:
        told += f"; the lengths alone make {signed(float(scores.length_alone[best]), None)}"
    a, b = (read.name for read in result.reads)
    return f"{named(result, best)} {alone}: {first} over {a} (A), {second} over {b} (B): {told}"


def thousandth(value: float) -> str:
    """A mean beside another one."""
    return number(value, 3)


def in_tokens_of(entropy: float) -> str:
    """A mean entropy as so many tokens."""
    return form_of_tokens(float(np.exp(entropy)))


def _few(result: CorpusDifference) -> str:
    few = [
        f"{side} has only {counted(read.texts, 'text')}"
        for side, read in zip("AB", result.reads, strict=True)
        if read.texts < FLOOR
    ]
    return f"{' and '.join(few)}." if few else ""


def _lengths(result: CorpusDifference) -> str:
    if result.equal:
        few = [
            f"{percent(share)} of {side}"
            for side, share in zip("AB", result.compared, strict=True)
            if share < _MANY
        ]
        return f"No more than {' and '.join(few)} is of a length that both have." if few else ""
    a, b = result.tokens
    if max(a, b) < _LONGER * min(a, b):
        return ""
    return (
        f"Texts of A have {number(a, 1)} tokens in the mean, those of B {number(b, 1)}: that alone may do "
        f"it; no length has {FEWEST} texts of both."
    )


def equal_length(result: CorpusDifference) -> Iterator[str]:
    """Which lengths are compared, of how many texts, and how near to each other they are then."""
    if not result.equal:
        return
    shared = [pair for pair in result.lengths if pair.shared]
    ends = f"{shared[0].least:,} to {shared[-1].most:,} tokens"
    shares = " and ".join(
        f"{percent(share)} of {side}" for side, share in zip("AB", result.compared, strict=True)
    )
    a, b = result.tokens
    told = (
        f"equal length: texts of {ends}, {shares}, in {counted(len(shared), 'class')} (each with {FEWEST} "
        f"texts of both or more), weighed alike; {number(a, 1)} tokens in A then, {number(b, 1)} in B, which "
        "the slope from class to class takes out"
    )
    models = {each.model for each in result.provenances}
    yield f"{told}; each in the tokens of its own model" if len(models) > 1 else told


def control(result: CorpusDifference) -> str:
    """What is held against what: the scatter over texts, the largest of so many heads, and length alone."""
    told = "how far the texts of one corpus scatter, how far the luckiest of so many heads would get"
    return f"{told}, and what the lengths of texts alone make" if result.equal else told


def read(result: CorpusDifference) -> str:
    """What each of them is, and how much."""
    lengths = [read.tokens / max(read.texts, 1) for read in result.reads]
    texts = [counted(read.texts, "text") for read in result.reads]
    both = zip("AB", result.reads, texts, lengths, strict=True)
    return " · ".join(
        f"{side} {read.name}: {count} of {number(mean, 1)} tokens in the mean"
        for side, read, count, mean in both
    )
