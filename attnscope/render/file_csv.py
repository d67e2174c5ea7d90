"""A result as CSV: comment lines with verdict and provenance, one heading line, then one row per fact."""

import csv
import io
from collections.abc import Iterator
from itertools import product

from attnscope.render.certificate import certificate_words
from attnscope.render.file_json import document
from attnscope.results import Certificate, HeadAttention, Overview, Verification
from attnscope.tokens import Tokens, printable

Row = tuple[object, ...]


def as_csv(result: HeadAttention | Overview | Verification) -> str:
    """Long form: a row per query and key, or per layer and head; floats as Python's shortest exact form."""
    buffer = io.StringIO()
    buffer.writelines(f"# {key}: {printable(str(value))}\n" for key, value in _comments(result))
    csv.writer(buffer, lineterminator="\n").writerows(_rows(result))
    return buffer.getvalue()


def _comments(result: HeadAttention | Overview | Verification) -> Iterator[tuple[str, object]]:
    told = document(result, arrays=False)
    for key in ("schema", "name", "kind", "layer", "head", "module", "verdict"):
        if key in told and not isinstance(told[key], list):
            yield key, told[key]
    if isinstance(result, HeadAttention):
        yield "certificate", certificate_words(result.certificate)
    for key, value in told["provenance"].items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {version}" for name, version in value.items())
        elif isinstance(value, tuple):
            value = " ".join(map(str, value))
        yield key, "" if value is None else value
    for text in _texts(result):
        yield "text", text
    if isinstance(result, Verification):
        for check in result.outputs:
            yield "output", f"{check.name} {'identical' if check.identical else check.difference}"
        yield from (("note", note) for note in result.notes)


def _texts(result: HeadAttention | Overview | Verification) -> tuple[str, ...]:
    if isinstance(result, Verification):
        return result.tokens.texts
    same = result.query_tokens is result.key_tokens
    return result.query_tokens.texts if same else result.query_tokens.texts + result.key_tokens.texts


def _rows(result: HeadAttention | Overview | Verification) -> Iterator[Row]:
    if isinstance(result, HeadAttention):
        return _head(result)
    if isinstance(result, Overview):
        return _overview(result)
    return _verification(result)


def _head(result: HeadAttention) -> Iterator[Row]:
    yield "query", "query_token", "key", "key_token", "allowed", "score", "scaled", "weight"
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for query, key in product(range(len(queries)), range(len(keys))):
        stages = (result.scores, result.scaled, result.weights)
        values = (_float(stage[query, key]) for stage in stages)
        yield query, queries[query], key, keys[key], int(result.allowed[query, key]), *values


def _overview(result: Overview) -> Iterator[Row]:
    yield "layer", "head", "entropy", "query", "query_token", "key", "key_token", "weight", "verdict"
    for (i, layer), (j, head) in product(enumerate(result.layers), enumerate(result.heads)):
        query, key = (int(position) for position in result.strongest[i, j])
        link = (*_place(result.query_tokens, query), *_place(result.key_tokens, key))
        weight = _float(result.strongest_weight[i, j])
        verdict = result.certificates[i][j].verdict.value
        yield layer, head, _float(result.entropy.values[i, j]), *link, weight, verdict


def _place(tokens: Tokens, position: int) -> Row:
    """Position and label, both empty where there is none."""
    return ("", "") if position < 0 else (position, tokens.labels[position])


def _verification(result: Verification) -> Iterator[Row]:
    errors = ("weight_error", "weight_tolerance", "output_error", "output_tolerance")
    yield "layer", "kind", "head", *errors, "power", "hardest_fault", "verdict"
    for layer in result.layers:
        for head, certificate in enumerate(layer.certificates):
            values = (_float(getattr(certificate, name)) for name in errors)
            hardest = _hardest(certificate)
            verdict = certificate.verdict.value
            yield layer.layer, layer.kind.value, head, *values, _float(certificate.power), hardest, verdict


def _hardest(certificate: Certificate) -> str:
    fault = min(certificate.faults, key=lambda fault: fault.power, default=None)
    return fault.name if fault else ""


def _float(value: float) -> str:
    return repr(float(value))
