"""A stored run held against a new one as it could have come out."""

import math

import made_results

from attnscope.results import Check, HeadCheck, Verdict


def check(*, broken: bool = False) -> Check:
    """Three heads: as stored, or `broken`: one of them off, and one that has lost a number."""
    heads = (
        HeadCheck(0, 1, "weights", 1e-8, 3e-7, Verdict.CERTIFIED),
        HeadCheck(2, 11, "scores", 4e-3 if broken else 4e-7, 2e-6, Verdict.CERTIFIED),
        HeadCheck(3, 5, "output", math.inf if broken else 0.0, 2e-6, Verdict.CERTIFIED),
    )
    told = made_results.provenance()
    return Check("run.npz", heads, ("torch: stored 2.4, now 2.5",), told, told)
