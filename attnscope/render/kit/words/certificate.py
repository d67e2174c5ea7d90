"""A certificate in one line: the verdict as glyph, word and colour, and in full the numbers it rests on.

The small print of a picture has it in fewer words, and what pins its numbers down.
"""

import math

from rich.text import Text

from attnscope.printable import printable
from attnscope.render.kit.numbers import cell, counted, significant
from attnscope.render.look import look_now
from attnscope.results import Certificate, Provenance, Verdict
from attnscope.vocabulary import Effect, Standing

GLYPHS = {
    Verdict.CERTIFIED: "✓",
    Verdict.RECOMPUTED: "✓",
    Verdict.INCONCLUSIVE: "?",
    Verdict.PARTIAL: "~",
    Verdict.STORED: "○",
    Verdict.UNCERTIFIED: "○",
    Verdict.FAILED: "✗",
}
STYLES = {each: f"verdict.{each.value}" for each in Verdict}  # names, see `terminal.console`

DISTRUST = "do not trust these numbers"  # where a certificate failed
_WORDS = {
    Verdict.RECOMPUTED: "weights recomputed from the stored q, k, v",
    Verdict.STORED: "as stored, not checked here",
    Verdict.FAILED: "FAILED",
}
_MOST_POWER = 1_000_000  # beyond this a larger number tells nobody anything

_EFFECTS = {
    Effect.OWN: "acts on its own rows",
    Effect.SOME: "",
    Effect.UNKNOWN: "its effect was not tried",
    Effect.NONE: "",
    Effect.OTHER: "",
}  # nothing where the reason says it

_PLACES = {
    Standing.OWN: "tokens in place",
    Standing.MIXED: "tokens in place, mixed with others before",
    Standing.UNKNOWN: "",
    Standing.OTHER: "rows are not the tokens in their place: numbered",
}


def verdict_words(verdict: Verdict) -> str:
    """`✓ certified`; a failure is written in capitals."""
    return f"{GLYPHS[verdict]} {_WORDS.get(verdict, verdict.value)}"


def certificate_line(certificate: Certificate, full: bool = False) -> Text:
    """One line without a line break: the verdict, and `full` or where it is not certified what it rests on.

    That is: what is open, errors against tolerances, faults, positions. Rows that are not the tokens in
    their place, or not these alone, are always told.
    """
    line = Text(verdict_words(certificate.verdict), style=STYLES[certificate.verdict])
    if certificate.verdict is Verdict.RECOMPUTED:
        line.append("; model, layer and tokens as stored, not checked")
    tried = f" (tried {certificate.positions_tried})" if certificate.positions_tried else ""
    places = f"{place}{tried}" if (place := _PLACES[certificate.positions]) else ""
    in_sentence = certificate.verdict is Verdict.INCONCLUSIVE and all(
        name in certificate.reason for name in certificate.unseen
    )
    told: tuple[str, ...] = (
        ("" if in_sentence else certificate.reason),
        _errors(certificate),
        _faults(certificate),
        places,
        _effect(certificate),
    )
    if certificate.verdict in (Verdict.CERTIFIED, Verdict.RECOMPUTED, Verdict.STORED) and not full:
        untried = certificate.reach is not None and certificate.reach.effect is Effect.UNKNOWN
        told = (
            places if certificate.positions in (Standing.OTHER, Standing.MIXED) else "",
            _effect(certificate) if untried else _beside(certificate),
        )
    phrases = [phrase for phrase in told if phrase]
    if phrases and certificate.verdict in (Verdict.RECOMPUTED, Verdict.STORED):
        phrases[0] = f"when it was run: {phrases[0]}"
    return Text.assemble(line, *(f" · {phrase}" for phrase in phrases))


def certificate_words(certificate: Certificate) -> str:
    """The line of a certificate in full as plain text, for a picture or a file."""
    return certificate_line(certificate, full=True).plain


def power_words(power: float) -> str:
    """How many times the tolerance, in two digits: `.20 times`, `29,000 times`, `over 1,000,000 times`."""
    if power > _MOST_POWER:
        return f"over {_MOST_POWER:,} times"
    return f"{significant(power) if power < 1000 else cell(float(f'{power:.1e}'), 0)} times"


def _effect(certificate: Certificate) -> str:
    reach = certificate.reach
    if reach is None:
        return ""
    if reach.effect is Effect.UNKNOWN and reach.runs:
        return f"its effect could not be told: {reach.reason}"
    if certificate.verdict in (Verdict.UNCERTIFIED, Verdict.FAILED):
        return ""
    sample = f" (tried {reach.reason})" if reach.effect is Effect.OWN and reach.reason else ""
    beside = f", {_beside(certificate)}" if _EFFECTS[reach.effect] and reach.beside else ""
    return _EFFECTS[reach.effect] + sample + beside


def _beside(certificate: Certificate) -> str:
    return certificate.reach.beside if certificate.reach is not None else ""


def _errors(certificate: Certificate) -> str:
    """`weights off 3.1e-8 (tolerated 5.2e-7), output 1.1e-7 (1.0e-6)`, or what was not compared.

    An error that is no number is itself the failure when the verdict is `failed`.
    """
    failed = certificate.verdict is Verdict.FAILED
    weights, output = "weights not compared", "output not compared"
    if failed or not math.isnan(certificate.weight_error):
        tolerated = significant(certificate.weight_tolerance)
        weights = f"weights off {significant(certificate.weight_error)} (tolerated {tolerated})"
    if failed or not math.isnan(certificate.output_error):
        tolerated = significant(certificate.output_tolerance)
        output = f"output {significant(certificate.output_error)} ({tolerated})"
    return f"{weights}, {output}"


def _faults(certificate: Certificate) -> str:
    if not certificate.faults:
        return "no fault tried"
    tried = f"{counted(len(certificate.faults), 'fault')} tried"
    if certificate.unseen:
        unseen = [f for f in certificate.faults if not f.power > 1]
        named = ", ".join(f"{fault.name} ({power_words(fault.power)} the tolerance)" for fault in unseen)
        return f"{tried}, not seen: {named}"
    hardest = min(certificate.faults, key=lambda fault: fault.power)
    return f"{tried}, faintest: {hardest.name} at {power_words(hardest.power)} the tolerance"


def proof_words(certificate: Certificate) -> str:
    """The certificate for the small print: in a few words, unless the caption has everything."""
    return certificate_line(certificate, full=look_now().in_full).plain


def source_words(provenance: Provenance) -> str:
    """What pins the numbers down, for the small print of a picture that has everything; else nothing."""
    return whole_source(provenance, provenance.model) if look_now().in_full else ""


def whole_source(provenance: Provenance, name: str) -> str:
    """The model by this name, commit or hash, device, kernel, route, versions."""
    versions = " ".join(f"{name} {version}" for name, version in sorted(provenance.versions.items()))
    how = (provenance.device, provenance.dtype, f"kernel {provenance.kernel}", provenance.route)
    parts = (name, provenance.source, *how, versions)
    return " · ".join(printable(part) for part in parts if part)
