"""Words around a result: its model, head, kernel, text, weights and certificate.

`origin_words` is their short form, at the end of a line of proof.
"""

import math
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from rich.text import Text

from attnscope.printable import printable
from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import cell, counted, number, parameter, significant, weight
from attnscope.render.look import look_now
from attnscope.results import (
    Certificate,
    HeadAttention,
    HeadView,
    HeadWeights,
    Kind,
    Overview,
    Provenance,
    Special,
    SpecialMass,
    Verdict,
)
from attnscope.results.base.groups import Groups
from attnscope.results.base.strongest import AtDistance
from attnscope.tokens import Tokens
from attnscope.vocabulary import IN_PARTS, Effect, Standing, Unit

_ATTENTION = {
    Kind.ENCODER: "encoder self-attention",
    Kind.DECODER: "decoder self-attention",
    Kind.CROSS: "cross-attention, decoder to encoder",
}
_GENERIC = re.compile(  # names of folders that many models have
    r"(model|models|snapshot|checkpoint|weights|output|final|best|last|checkpoint-\d+|[0-9a-f]{12,})",
    re.IGNORECASE,
)
_HUB_ID = re.compile(r"[^./\\~][^/\\]*(/[^/\\]+)?")
_CACHED = re.compile(r"models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+[/\\]?$")
CROSS_ROWS = "a row is the token that the decoder reads, and decides on the next one"


def model_words(provenance: Provenance) -> str:
    """The model's name with its adapter, and whether it is a demo or a replacement."""
    name = own_name(provenance.model)
    if provenance.demo:
        name = f"bundled {name} model"
    if provenance.adapter == "none":
        name += " without its adapter"
    elif provenance.adapter is not None:
        own = provenance.adapter == provenance.model
        name += " with its adapter" if own else f" with adapter {own_name(provenance.adapter)}"
    if provenance.requested not in (provenance.model, provenance.adapter):
        name += f", asked for {own_name(provenance.requested)}"
    return name


def own_name(model: str) -> str:
    """Short name of a model: a hub id, or the last part of a folder's path.

    The last two parts where the last one is generic: `snapshot`, `checkpoint-500`, a hash.
    """
    if _HUB_ID.fullmatch(model):
        return printable(model)
    cached = _CACHED.search(model)
    parts = [part for part in re.split(r"[/\\]", model) if part not in ("", ".", "..", "~")]
    if cached:
        return printable(cached[1].replace("--", "/"))
    return printable("/".join(parts[-2 if _GENERIC.fullmatch(parts[-1]) else -1 :]) if parts else model)


def attention_words(kind: Kind) -> str:
    return _ATTENTION[kind]


def reading(provenance: Provenance) -> Text:
    """Line of revision, device, dtype, kernel and route of a run."""
    source = f"revision {provenance.source}" if provenance.revision else provenance.source
    parts = (source, provenance.device, provenance.dtype, f"kernel {provenance.kernel}", provenance.route)
    return Text(" · ".join(printable(part) for part in parts), style="dim")


def feature_words(result: HeadWeights | Overview) -> list[str]:
    """Phrases for the features that set a head or heads apart from plain attention."""
    features = [CROSS_ROWS] if result.kind is Kind.CROSS else []
    if origin := written_words(result.query_tokens):
        features.append(origin)
    if isinstance(result, Overview):
        return [*features, *_sharing(result), *result.notes]
    if result.blocks > 1:
        features.append(f"block {result.block} of {result.blocks} (--block)")
    if isinstance(result, HeadAttention):
        features += _of_operands(result)
    return [*features, *result.notes]


def written_words(tokens: Tokens) -> str:
    """Phrase for the text that the model generated; empty where all text was given."""
    if not tokens.written:
        return ""
    what = "what follows →" if len(tokens.texts) > 1 else "the decoder's text"
    return f"the model wrote {what} itself, {tokens.written}; its last token was not read and has no row"


def _of_operands(result: HeadAttention) -> list[str]:
    features = []
    dim, value_dim = result.q.shape[1], result.v.shape[1]
    if result.key_heads < result.heads:
        group = result.heads // result.key_heads
        first = result.key_head * group
        features.append(f"reads key head {result.key_head} (shared by heads {first}-{first + group - 1})")
    if not math.isclose(result.scale, dim**-0.5, rel_tol=1e-6):
        features.append(f"scale {parameter(result.scale)} (usual: 1/√{dim} = {parameter(dim**-0.5, 2)})")
    if value_dim != dim:
        features.append(f"keys of {dim} dimensions, values of {value_dim}")
    features += [f"{name} added" for name in result.terms]
    if result.window is not None:
        both_ways = result.kind is Kind.ENCODER and bool(np.triu(result.allowed, 1).any())
        width = counted(result.window - both_ways, "token")
        features.append(f"window of {width}{' to either side' if both_ways else ''}")
    if result.softcap is not None:
        features.append(f"scores capped at ±{parameter(result.softcap)}")
    if result.sink is not None:
        features.append(f"sink {number(result.sink)}{' on average' if result.sink_by_query else ''}")
    return features


def _sharing(result: Overview) -> list[str]:
    sizes = set(result.sharing) - {1}
    if len(sizes) > 1:
        return [f"heads share key heads, {min(sizes)} to {max(sizes)} each"]
    groups = (
        f"every {each} heads share a key head: 0-{each - 1}, {each}-{2 * each - 1}, ..." for each in sizes
    )
    return list(groups) if set(result.sharing) == sizes else [f"{each} in some layers" for each in groups]


def quoted(tokens: Tokens) -> Text:
    """The texts in quotation marks, cut at the console's width; an arrow leads to generated text."""
    given = tokens.texts[:-1] if tokens.written and len(tokens.texts) > 1 else tokens.texts
    quoted = " | ".join(f"“{printable(text)}”" for text in given)
    if len(given) < len(tokens.texts):
        quoted += f" → “{printable(tokens.texts[-1].strip())}”"
    return Text(quoted, style="italic", no_wrap=True, overflow="ellipsis")


_DIGITS = 8
_HEX = re.compile(r"(?:sha256:)?([0-9a-f]{8,})")
_USUAL_DEVICE = "cpu"


def origin_words(origins: Sequence[Provenance]) -> tuple[str, ...]:
    """Short words of models, kernels, dtypes and unusual devices: `demo e4cc4168`, `eager float32`."""
    told = dict.fromkeys(_model(each) for each in origins)
    told |= dict.fromkeys(_run(each) for each in origins)
    told |= dict.fromkeys(each.device for each in origins if each.device != _USUAL_DEVICE)
    return tuple(printable(each) for each in told if each)


def _model(origin: Provenance) -> str:
    told = own_name(origin.model)
    if origin.adapter == "none":
        told += " without its adapter"
    elif origin.adapter is not None:
        told += " with its adapter" if origin.adapter == origin.model else f" with {own_name(origin.adapter)}"
    pin = _HEX.match(origin.revision or origin.digest or "")
    told += f" {pin[1][:_DIGITS]}" if pin else ""
    if origin.unread:
        told += f" ({counted(len(origin.unread), 'weight')} unread)"
    if origin.requested not in (origin.model, origin.adapter):
        told += f" (asked for {own_name(origin.requested)})"
    return told


def _run(origin: Provenance) -> str:
    in_parts = f", {IN_PARTS}"
    kernel = origin.kernel.removesuffix(in_parts)
    told = " ".join(each for each in (kernel, origin.dtype) if each)
    return told + in_parts if kernel != origin.kernel else told


SPANS = "tokens named together: sum over the keys, mean over the queries"
WITHOUT_SPECIAL = "special tokens left out, rows divided by what remains"
_MOST_NAMES = 4


def joined_words(by: Unit) -> str:
    """Phrase for a weight between words, sentences or passages."""
    if by is Unit.WORD:
        return "words: sum over the pieces of a key, mean over those of a query"
    return f"{by.several}: sum over the tokens of a key, mean over those of a query"


def special_words(mass: SpecialMass | None, of: str = "the attention") -> str:
    """`special tokens get .43 of the attention: [CLS] .03, [SEP] .40`; empty where there are none."""
    if mass is None:
        return ""
    listed = [(settled(name), share) for name, share in mass.by_name.items()]
    if len(listed) == 1:
        return f"special token {listed[0][0]} gets {weight(mass.total)} of {of}"
    if len(listed) > _MOST_NAMES:
        listed = sorted(listed, key=lambda each: -each[1])[:_MOST_NAMES]
    named = ", ".join(f"{name} {weight(share)}" for name, share in listed)
    more = ", ..." if len(listed) < len(mass.by_name) else ""
    return f"special tokens get {weight(mass.total)} of {of}: {named}{more}"


def head_of(result: HeadWeights | HeadView) -> HeadWeights:
    return result.head if isinstance(result, HeadView) else result


def key_groups(result: HeadWeights | HeadView) -> Groups:
    """Positions of the head's keys behind each column."""
    return (
        result.key_groups
        if isinstance(result, HeadView)
        else tuple((i,) for i in range(len(result.key_tokens)))
    )


def divides(result: HeadWeights | HeadView) -> bool:
    """True where rows are renormalised without special tokens."""
    return isinstance(result, HeadView) and result.special is Special.RENORMALISE


def weights_words(result: HeadWeights | HeadView) -> list[str]:
    """Phrases about the weights: row sums, special tokens, and the view."""
    phrases = [sums_words(result), special_words(head_of(result).special_mass), *view_words(result)]
    return [phrase for phrase in phrases if phrase]


def sums_words(result: HeadWeights | HeadView) -> str:
    """Phrase for the sum of a row."""
    head = head_of(result)
    sink = isinstance(head, HeadAttention) and head.sink is not None
    if not isinstance(result, HeadView) or sum(map(len, result.key_groups)) >= len(head.key_tokens):
        if not isinstance(head, HeadAttention):
            least, most = (cell(each) for each in head.row_sums)
            between = f"between {least} and {most}" if least != most else least.replace("1.00", "1")
            return f"rows sum to {between}"
        return "rows sum to less than 1: the sink takes the rest" if sink else "rows sum to 1"
    if divides(result):
        return WITHOUT_SPECIAL
    return f"rows sum to less than 1: special tokens{' and the sink' if sink else ''} get the rest"


def view_words(view: HeadWeights | HeadView) -> list[str]:
    """Phrases for a view: joined tokens, emptied rows, and what the certificate covers."""
    if not isinstance(view, HeadView):
        return []
    remarks = [joined_words(view.by)] if view.by.joins else [SPANS] if spans(view) else []
    if view.emptied:
        verb = "has" if view.emptied == 1 else "have"
        remarks.append(f"{counted(view.emptied, 'query')} {verb} nothing left")
    if view.by.joins or view.special is not Special.SHOW or spans(view):
        remarks.append("the certificate is that of the weights by tokens")
    return remarks


def spans(view: HeadView) -> bool:
    """True where a view joins several tokens that are not a word, sentence or passage."""
    return not view.by.joins and any(len(group) > 1 for group in (*view.query_groups, *view.key_groups))


def overview_view_words(result: Overview) -> list[str]:
    """Phrases for the view of several heads."""
    mass = result.special_mass if result.aim is None else None  # all rows together say nothing of one
    phrases = [special_words(mass, "the attention of all heads")]
    phrases += [joined_words(result.by)] if result.by.joins else [SPANS] if result.aim_spans else []
    if result.special is Special.RENORMALISE:
        phrases.append(WITHOUT_SPECIAL)
    if result.tokens is not None:
        phrases.append("certificates are those of the weights by tokens")
    return [phrase for phrase in phrases if phrase]


MOSTLY = 0.8  # share of rows at one distance from which position alone explains a head
SINK = 0.5  # share of weight on special tokens above which a head says little of the text
_NO_DECIMALS = 2.95  # tokens


def tokens_looked_at(entropy: float) -> float:
    """exp(entropy): the number of equally weighted tokens with this entropy in nats."""
    return float(np.exp(entropy))


def mean_entropy(weights: Float[np.ndarray, "query key"]) -> float:
    """Mean entropy in nats over the rows that have a key (Clark et al. 2019)."""
    rows = weights[np.isfinite(weights).all(axis=1)]
    held = np.where(rows > 0, rows, 1.0)
    return float(-(held * np.log(held)).sum(axis=1).mean()) if len(rows) else float("nan")


def many(tokens: float) -> str:
    """A number of tokens as text, `1.3`, `6`: with a decimal below 3."""
    return f"{tokens:.0f}" if tokens >= _NO_DECIMALS else cell(tokens, 1)


def mostly(distance: AtDistance) -> bool:
    """True where at least .8 of the rows look most at one distance, which position alone can explain."""
    return distance.of > 1 and distance.rows >= MOSTLY * distance.of


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
_MOST_POWER = 1_000_000  # larger numbers are written as over this

_EFFECTS = {
    Effect.OWN: "acts on its own rows",
    Effect.SOME: "",
    Effect.UNKNOWN: "its effect was not tried",
    Effect.NONE: "",
    Effect.OTHER: "",
}  # empty where the reason says so already

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
    """The certificate in one line: verdict, and the evidence if `full` or not certified.

    The evidence is the reason, errors against tolerances, faults and positions. Rows that are not the tokens
    in their place, or not only these, are always reported.
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
    """The full line of a certificate as plain text, for a picture or a file."""
    return certificate_line(certificate, full=True).plain


def power_words(power: float) -> str:
    """A multiple of the tolerance, in two digits: `.20 times`, `29,000 times`, `over 1,000,000 times`."""
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
    """`weights off 3.1e-8 (tolerated 5.2e-7), output 1.1e-7 (1.0e-6)`; errors may be NaN in a failure."""
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
    """The certificate for the small print, in full only with the full caption."""
    return certificate_line(certificate, full=look_now().in_full).plain


def source_words(provenance: Provenance) -> str:
    """The model's origin for the small print with the full caption; else empty."""
    return whole_source(provenance, provenance.model) if look_now().in_full else ""


def whole_source(provenance: Provenance, name: str) -> str:
    """`name` with revision or hash, device, dtype, kernel, route and versions."""
    versions = " ".join(f"{name} {version}" for name, version in sorted(provenance.versions.items()))
    how = (provenance.device, provenance.dtype, f"kernel {provenance.kernel}", provenance.route)
    parts = (name, provenance.source, *how, versions)
    return " · ".join(printable(part) for part in parts if part)
