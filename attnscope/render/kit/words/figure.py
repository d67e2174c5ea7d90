"""The words around every figure of a head: its heading, the text that was read, what pins the numbers."""

from attnscope.render.kit.words.certificate import certificate_line, verdict_words
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.look import look_now
from attnscope.results import Certificate, HeadWeights, Overview, Provenance, Verdict
from attnscope.tokens import printable


def heading_words(result: HeadWeights, shown: str = "") -> str:
    """Model, head, kind, what is `shown` of it, and the verdict where it is not the best."""
    parts = [model_words(result.provenance), result.name, where_words(result)]
    parts += [shown] if shown else []
    if result.certificate.verdict is not Verdict.CERTIFIED:
        parts.append(
            verdict_words(result.certificate.verdict).replace(" ", "\u00a0")
        )  # the mark stays with it
    return " · ".join(parts)


def sentence_words(result: HeadWeights | Overview) -> str:
    """The text that was read, both where there are two; nothing for positions that stand for no text."""
    sentence = f"“{printable(result.query_tokens.sentence)}”" if result.query_tokens.texts else ""
    if result.query_tokens is not result.key_tokens and result.key_tokens.texts:
        sentence = f"query: {sentence}   key: “{printable(result.key_tokens.sentence)}”"
    return sentence


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
