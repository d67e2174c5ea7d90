"""One head that attnscope has read, worked out again from its queries, keys and values."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from attnscope.errors import InputError
from attnscope.results import HeadAttention
from attnscope.results.worked import Check, Given, Worked
from attnscope.worked.attention import work_out
from attnscope.worked.beside import Beside


def work_head(head: HeadAttention) -> Worked:
    """Every step of `head` from its own q, k, v, mask, scale and what was added to its scores.

    What comes out is held against the weights and the output that the head has, and its certificate against
    the model stands beside. Raises `InputError` for a head of which these were not kept.
    """
    if not all(np.isfinite(array).all() for array in (head.q, head.k, head.v)):
        raise InputError(f"{head.name}: the file does not hold its q, k and v: write it again")
    if head.sink is not None and head.sink_by_query:
        raise InputError(f"{head.name} has a sink of its own for every query, which the file does not hold")
    names = {"query_names": head.query_tokens.labels, "key_names": head.key_tokens.labels}
    given = {letter: Given(np.asarray(getattr(head, letter), np.float64)) for letter in "qkv"}
    worked = work_out(given, names=names, beside=beside_of(head))
    tolerances = worked.proofs[0][1]
    largest = float(np.abs(head.v).max())
    return replace(
        worked,
        title=f"{worked.title}, {called(head)}",
        notes=(*worked.notes, *head.notes),
        proofs=(*worked.proofs, ("the model's own weights and output", head.certificate)),
        checks=(
            _check(worked, "weights", head.weights, tolerances.weight_tolerance),
            _check(worked, "output", head.output, tolerances.output_tolerance * largest),
        ),
        provenance=head.provenance,
    )


def _check(worked: Worked, key: str, kept: np.ndarray, tolerance: float) -> Check:
    off = np.nan_to_num(np.abs(worked.step(key).matrix.values - kept))
    return Check.of(f"{key} against those of the head", float(off.max()), tolerance)


def beside_of(head: HeadAttention) -> Beside:
    """What entered the softmax of `head` beside its products."""
    return Beside(
        scale=head.scale,
        softcap=head.softcap,
        added=head.terms,
        allowed=None if head.allowed.all() else head.allowed,
        sink=head.sink,
    )


def called(head: HeadAttention) -> str:
    """`L0 H11 of the bundled demo model`; of a folder on this machine its own name."""
    told, place = head.provenance, Path(head.provenance.model)
    name = place.name if place.is_absolute() else told.model
    return f"{head.name} of " + (f"the bundled {name} model" if told.demo else name)
