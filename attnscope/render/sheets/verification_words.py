"""The sentences of a verification: the answer, its control, what an untouched run gives, what is proved."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from attnscope.render.kit.numbers import counted, significant
from attnscope.render.kit.words.certificate import power_words, verdict_words
from attnscope.render.kit.words.header import own_name
from attnscope.render.sheet.said import proof
from attnscope.results import Certificate, Verdict, Verification
from attnscope.results.base.origin import Fault


def answer(result: Verification) -> str:
    """Whether each head is computed here as the model computes it, and what reading the model changed."""
    every = [one for layer in result.layers for one in layer.certificates]
    count, model = Counter(one.verdict for one in every), own_name(result.provenance.model)
    kinds = {layer.kind.value for layer in result.layers}
    head = f"{kinds.pop()} head" if len(kinds) == 1 else "head"
    changed = [check for check in result.outputs if not check.identical]
    if not every:
        told = f"No head of {model} was checked: nothing is proved"
    elif count[Verdict.FAILED]:
        told = _refuted(every, count[Verdict.FAILED], head, model)
    elif changed:
        told = f"✗ Watching {model} changed its results: do not use these numbers"
    elif count[Verdict.STORED]:
        told = f"{model} as the file says: {counted(len(every), 'head')} checked then, nothing again here"
    else:
        told = _held(every, count, head, model)
    if changed:
        worst = max(changed, key=lambda each: each.difference)
        told += f". With every head read, {worst.name} differs by up to {significant(worst.difference)}"
    elif every and result.outputs and len(every) == count[Verdict.CERTIFIED]:
        told += ", and watching the model changed none of its results"
    return f"{told}."


def _refuted(every: Sequence[Certificate], failed: int, head: str, model: str) -> str:
    """How many heads are not as computed here, and how far the worst of them is off."""
    if failed == len(every):
        told = f"{_of(0, len(every), head, model)} computed here as the model computes it"
    else:
        them = "it" if failed == 1 else "them"
        told = f"{_of(failed, len(every), head, model)} not computed here as the model computes {them}"
    one = max((each for each in every if each.verdict is Verdict.FAILED), key=lambda each: used(each)[0])
    _, error, allowed, what = used(one)
    if math.isnan(error):
        return f"✗ {told}" + (f": {one.reason}" if one.reason else "")
    off = f"{what} differ by up to {significant(error)}, rounding explains at most {significant(allowed)}"
    return f"✗ {told}: {off}"


def _held(every: Sequence[Certificate], count: Counter[Verdict], head: str, model: str) -> str:
    """How many heads are as the model computes them, and why that is open for the others."""
    good = count[Verdict.CERTIFIED] + count[Verdict.RECOMPUTED]
    if count[Verdict.UNCERTIFIED] == len(every):
        return f"{model} gives its weights, but not the queries and keys behind them: nothing can be checked"
    them = "it" if good < 2 else "them"
    told = [f"{_of(good, len(every), head, model)} computed here as the model computes {them}"]
    told += [f"for {count[each]} {why}" for each, why in _OPEN.items() if count[each]]
    if parts := [one for one in every if one.verdict is Verdict.PARTIAL]:
        reasons = Counter(one.reason for one in parts if one.reason).most_common(1)
        why = f": {reasons[0][0]}" if reasons else ""
        told.append(f"of {len(parts)} a part could not be followed{why}")
    return "; ".join(told) + (". Nothing disagrees" if len(told) > 1 else "")


def _of(number: int, total: int, head: str, model: str) -> str:
    """`All 48 encoder heads of demo are`, `46 of 48 heads of demo are`, `None of the 48 heads of demo is`."""
    heads = counted(total, head)
    if total == 1:
        return f"The only {head} of {model} is{'' if number else ' not'}"
    if number in (0, total):
        return f"All {heads} of {model} are" if number else f"None of the {heads} of {model} is"
    return f"{number} of {heads} of {model} {'is' if number == 1 else 'are'}"


NOT_COMPARED = (-1.0, math.nan, math.nan, "")
_OPEN = {
    Verdict.INCONCLUSIVE: "this text or its precision is too coarse to tell",
    Verdict.UNCERTIFIED: "the model gives weights alone, which nothing here can check",
}


def used(certificate: Certificate) -> tuple[float, float, float, str]:
    """What uses most of its tolerance, weights or output: its share, its error, its tolerance, its name."""
    pairs = (
        (certificate.weight_error, certificate.weight_tolerance, "weights"),
        (certificate.output_error, certificate.output_tolerance, "outputs"),
    )
    shares = [
        (error / allowed if allowed else math.inf, error, allowed, what)
        for error, allowed, what in pairs
        if not math.isnan(error)
    ]
    return max(shares, default=NOT_COMPARED)


def control(every: Sequence[Certificate]) -> str:
    """What was done on purpose to see whether a mistake would be seen."""
    if (weakest := hardest(every)) is None:
        return ""
    tried = max(len(each.faults) for each in every)
    mistakes = counted(tried, "mistake") + (" was" if tried == 1 else " were")
    return (
        f"{mistakes} put into every head on purpose; the one hardest to see, {weakest.name}, lies at "
        f"{power_words(weakest.power)} what rounding allows"
    )


def hardest(certificates: Sequence[Certificate]) -> Fault | None:
    """The mistake put in on purpose that is hardest to see."""
    faults = [fault for certificate in certificates for fault in certificate.faults]
    return min(faults, key=lambda fault: fault.power, default=None)


POWER = (
    "power: how many times the tolerance a mistake makes that is put in on purpose, of several mistakes the "
    "one hardest to see; no number: none could be tried",
)


def outputs(result: Verification) -> Iterator[str]:
    """The model's own results, watched and left alone."""
    if result.outputs:
        told = (
            f"{each.name} " + ("identical" if each.identical else f"off by {significant(each.difference)}")
            for each in result.outputs
        )
        yield f"against an untouched run: {', '.join(told)}"


def proofs(result: Verification, every: Sequence[Certificate]) -> Iterator[tuple[Verdict, str]]:
    yield from proof((each.verdict for each in every), "head")
    if result.verdict not in {each.verdict for each in every}:
        told = "no head was checked" if not every else "the model's own results changed while it was read"
        yield result.verdict, f"{verdict_words(result.verdict)}: {told}"
