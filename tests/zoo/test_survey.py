"""One family for every mechanism: read by its route, certified, and caught when it is broken.

The sweep (`tests.zoo.sweep`) reads every model type; these are the mechanisms that the types are made of.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch

from attnscope.attention import AttentionCall, Term
from attnscope.capture.run import run_watched
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Verdict
from attnscope.verify import certify

from .specimen import build
from .survey import survey

TAKEN_OVER = {
    "bert": set(),
    "albert": {"shared layers"},
    "llama": {"grouped queries", "rotary"},
    "gemma2": {"soft cap", "window", "own scale"},
    "gpt_oss": {"sinks", "window"},
    "inkling2_text": {"sinks", "relative position"},
    "deepseek_v32": {"value_dim differs"},
    "t5": {"relative position", "own scale"},
    "t5gemma2": {"keys are not the queries' tokens"},
    "whisper": {"own scale"},
    "diffllama": {"several attentions per layer"},
    "swin": {"bias in the mask", "several attentions per layer"},
}
TRACED = {
    "mpnet": {"relative position"},
    "deberta-v2": set(),
    "bloom": {"alibi"},
    "falcon": set(),
    "gpt_neo": {"own scale"},
    "swinv2": {"relative position", "several attentions per layer"},
}


@pytest.mark.parametrize("model_type", [*TAKEN_OVER, *TRACED])
def test_a_family_of_every_mechanism_is_certified(model_type: str) -> None:
    found = survey(build(model_type), blocks=3)
    assert found.verdict == "certified", found
    assert found.same_output
    assert found.silent == ()
    assert ("takeover" if model_type in TAKEN_OVER else "traced operations") in found.routes
    assert (TAKEN_OVER | TRACED)[model_type] <= set(found.special)
    assert found.power > 1


def without(name: str) -> Callable[[AttentionCall], dict[str, object]]:
    return lambda call: {"terms": tuple(term for term in call.terms if term.name != name)}


MUTATIONS: dict[str, tuple[str, Callable[[AttentionCall], dict[str, object]]]] = {
    "alibi dropped": ("mpt", without("alibi")),
    "alibi of another head": (
        "bloom",
        lambda call: {"terms": tuple(Term(term.name, term.values.roll(1, 0)) for term in call.terms)},
    ),
    "relative position dropped": ("mpnet", without("relative position")),
    "sink of another query": (
        "inkling2_text",
        lambda call: {"sinks": None if call.sinks is None else call.sinks.roll(1, 1)},
    ),
    "sink after the softmax dropped": ("granite_swa", lambda call: {"sinks": None}),
    "more keys than were chosen": (
        "deepseek_v32",
        lambda call: {"allowed": torch.ones(call.q.shape[1], call.k.shape[1]).tril().bool()[None]},
    ),
    "window dropped": (
        "gpt_neo",
        lambda call: {"allowed": torch.ones(call.q.shape[1], call.k.shape[1]).tril().bool()[None]},
    ),
    "bias in the mask dropped": ("swin", without("bias in the mask")),
    "key head swapped": ("falcon", lambda call: {"k": call.k.roll(1, 0), "q": call.q.roll(1, 0)}),
    "rotation left out": ("qwen3", lambda call: {"k": call.unrotated_k}),
    "soft cap doubled": ("gemma2", lambda call: {"softcap": call.softcap * 2}),
}


@cache
def calls(model_type: str) -> tuple[AttentionCall, ...]:
    specimen, found = build(model_type), []
    run_watched(specimen.model, specimen.inputs, find_sites(specimen.model), found.append)
    return tuple(found)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mechanism_that_is_broken_on_purpose_fails(name: str) -> None:
    model_type, change = MUTATIONS[name]
    honest = [call for call in calls(model_type) if call.q.shape[1] > 1 and call.block == 0]
    assert {certify(call, 1).verdict for call in honest} <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
    broken = [certify(replace(call, **change(call)), 1).verdict for call in honest]
    assert Verdict.FAILED in broken
