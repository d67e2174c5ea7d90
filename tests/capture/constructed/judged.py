"""What attnscope says of a construction, against what is true of it."""

from collections import Counter
from dataclasses import dataclass

from attnscope.errors import InputError
from attnscope.results import Certificate, Verdict
from attnscope.vocabulary import Effect, Standing
from tests.capture.constructed.construction import Construction, Head
from tests.capture.constructed.truth import Truth, truth

GOOD = (Verdict.CERTIFIED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class Judged:
    """`faults` are what is wrong about it, nothing where all is well."""

    wanted: str
    got: str
    reasons: str
    faults: tuple[str, ...]


def judged(construction: Construction, misleads: bool) -> Judged:
    true = truth(construction)
    try:
        every = list(construction.certificates())
    except InputError as refusal:
        return _refused(misleads, true, str(refusal))
    here = [each for head, each in every if head[0] in construction.layers]
    got = Counter(str(each.verdict) for each in here)
    return Judged(
        "not certified" if misleads else "certified",
        ", ".join(f"{count} {verdict}" for verdict, count in got.items()),
        " | ".join(dict.fromkeys(each.reason for each in here if each.reason)),
        tuple(_faults(construction, true, every, misleads)),
    )


def _refused(misleads: bool, true: Truth, why: str) -> Judged:
    """Nothing is shown, so nothing misleads."""
    faults = () if misleads and true.misleading else (f"refused: {why}",)
    return Judged("not certified" if misleads else "certified", "refused", why, faults)


def _faults(
    construction: Construction, true: Truth, every: list[tuple[Head, Certificate]], misleads: bool
) -> list[str]:
    faults = []
    if misleads != bool(true.misleading):
        faults.append(f"its list says otherwise than the truth: {dict(true.misleading)}")
    for (layer, head, call), told in every:
        where, may = f"L{layer} H{head}", GOOD if construction.weak else (Verdict.CERTIFIED,)
        if why := true.misleading.get((layer, head, call)):
            if told.verdict in GOOD:
                faults.append(f"{where} is {told.verdict}, and misleads: {why}")
            elif not told.reason:
                faults.append(f"{where} is {told.verdict} for no reason")
        elif told.verdict not in may and (not misleads or layer not in construction.layers):
            faults.append(f"{where} is {told.verdict}, and is right: {told.reason}")
        elif not misleads and (told.reach is None or told.reach.effect is not Effect.OWN):
            faults.append(f"{where} is {told.verdict}, and was not seen to act: {told.reach}")
        if told.positions is Standing.OWN and layer not in true.in_place:
            faults.append(f"{where}: positions are said to be in place, and are not")
    return faults
