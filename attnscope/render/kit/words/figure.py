"""The small print of a picture: its certificate, and what pins the numbers."""

from attnscope.printable import printable
from attnscope.render.kit.words.certificate import certificate_line
from attnscope.render.look import look_now
from attnscope.results import Certificate, Provenance


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
