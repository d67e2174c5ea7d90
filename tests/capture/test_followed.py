"""What a module makes of its kernel's answer: certified only where that very answer goes on."""

import contextlib
import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from families import ids, sharp
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from unfaithful import Unfaithful, unfaithful

from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.following.followed import UNFOLLOWED
from attnscope.capture.joined import JoinedCall
from attnscope.results import Verdict
from attnscope.verify import certify

UNUSED = "does not use what its kernel returned"
REORDERED = "puts what its kernel returned in another order"


class Mode(TorchFunctionMode):
    """One that changes nothing."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def flat(answer: Tensor) -> Tensor:
    return answer.flatten(2)


def zeroed(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    answer.zero_()
    return own.o_proj(flat(answer))


def doubled_in_place(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    seen = flat(answer)
    answer *= 2
    return own.o_proj(seen)


def doubled_unseen(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    answer.numpy()[:] *= 2
    return own.o_proj(flat(answer))


def one_head_doubled(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    answer[:, :, 2] *= 2
    return own.o_proj(flat(answer))


def written_over(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    answer.copy_(own.v_proj(x).unflatten(-1, (2, -1)).repeat_interleave(3, 2))
    return own.o_proj(flat(answer))


def thrown_away(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    own.kept.append(own.o_proj(flat(answer)))
    return own.o_proj(own.v_proj(x).repeat(1, 1, 3))


def copied_into_place(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    result = torch.empty_like(answer)
    result[:, :4] = answer[:, :4]
    result[:, 4:].copy_(answer[:, 4:])
    return own.o_proj(flat(result))


def in_a_mode_of_its_own(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
    with Mode():
        return own.o_proj(flat(answer))


def projected(change):
    """The projection of what `change` makes of the answer."""
    return lambda own, x, answer: own.o_proj(flat(change(own, answer)))


def halves_exchanged(own: Unfaithful, answer: Tensor) -> Tensor:
    return torch.cat([answer[:, :, 3:], answer[:, :, :3]], dim=2)


CHANGED = {
    "ignored": (lambda own, x, answer: own.o_proj(own.v_proj(x).repeat(1, 1, 3)), UNUSED),
    "replaced by zeros of its shape": (projected(lambda own, answer: torch.zeros_like(answer)), UNUSED),
    "used for what is thrown away": (thrown_away, UNUSED),
    "multiplied by a number": (projected(lambda own, answer: answer * 2), r"\(mul\)"),
    "multiplied after it was flattened": (projected(lambda own, answer: 2 * flat(answer)), r"\(mul\)"),
    "multiplied by zero": (projected(lambda own, answer: answer * 0), r"\(mul\)"),
    "multiplied by a number in a tensor": (
        projected(lambda own, answer: answer * torch.tensor(2.0)),
        r"\(mul\)",
    ),
    "multiplied by constants": (projected(lambda own, answer: flat(answer) * own.constant), r"\(mul\)"),
    "multiplied by made-up numbers": (
        projected(lambda own, answer: answer * torch.full((8,), 0.5)),
        r"\(mul\)",
    ),
    "doubled in place": (doubled_in_place, r"\(mul\)"),
    "doubled where no one looks": (doubled_unseen, "written over"),
    "doubled in one head": (one_head_doubled, r"\(mul\)"),
    "set to zero in place": (zeroed, r"\(zero\)"),
    "written over": (written_over, r"\(copy\)"),
    "bent": (projected(lambda own, answer: F.gelu(answer)), r"\(gelu\)"),
    "rounded": (projected(lambda own, answer: answer.round(decimals=1)), r"\(round\)"),
    "heads swapped": (projected(lambda own, answer: answer[:, :, [1, 0, 2, 3, 4, 5]]), REORDERED),
    "heads turned round": (projected(lambda own, answer: answer.flip(2)), REORDERED),
    "heads rolled": (projected(lambda own, answer: flat(answer).roll(8, -1)), REORDERED),
    "halves exchanged": (projected(halves_exchanged), REORDERED),
    "heads and dimensions exchanged": (projected(lambda own, answer: answer.mT), REORDERED),
    "heads swapped and handed on as they are": (lambda own, x, answer: flat(answer.flip(2)), REORDERED),
    "doubled and handed on as it is": (lambda own, x, answer: flat(answer) * 2, r"\(mul\)"),
}


def read(onward, kernel: str = "eager") -> tuple[AttentionCall, ...]:
    """The calls of a model with `onward`, whose results nobody changes by reading."""
    model = unfaithful(onward)
    model.set_attn_implementation(kernel)
    with torch.no_grad():
        plain = model(**ids()).last_hidden_state
        whole = record(model, ids()).calls
        assert torch.equal(model(**ids()).last_hidden_state, plain)
    assert not any(hooks for m in model.modules() for hooks in (m._forward_hooks, m._forward_pre_hooks))
    assert _get_current_function_mode_stack() == []
    return whole


@pytest.mark.parametrize("name", CHANGED)
def test_an_answer_that_does_not_go_on_as_it_is_makes_the_verdict_partial(name):
    onward, reason = CHANGED[name]
    calls = read(onward)
    assert len(calls) == 3
    for call in calls:
        certificate = certify(call, 4)
        assert certificate.verdict is Verdict.PARTIAL, certificate
        assert re.search(reason, certificate.reason), certificate.reason


AS_IT_IS = {
    "projected": lambda own, x, answer: own.o_proj(flat(answer)),
    "by way of views and casts": lambda own, x, answer: own.o_proj(
        own.dropout(answer.transpose(1, 2).contiguous().double().float().transpose(1, 2).reshape(*x.shape))
    ),
    "by a product": lambda own, x, answer: flat(answer) @ own.o_proj.weight.T,
    "by a product for each head": lambda own, x, answer: torch.einsum(
        "bqhd,ohd->bqo", answer, own.o_proj.weight.unflatten(-1, (6, 8))
    ),
    "handed on for another module to project": lambda own, x, answer: flat(answer),
    "gated by what was read": lambda own, x, answer: own.o_proj(flat(answer) * own.computed),
    "gated in place": lambda own, x, answer: own.o_proj(flat(answer).mul_(own.computed)),
    "gated by what was learned": lambda own, x, answer: own.o_proj(flat(answer) * own.gate),
    "with a learned factor for each head": lambda own, x, answer: own.o_proj(flat(answer * own.by_head)),
    "with one learned factor": lambda own, x, answer: own.o_proj(flat(answer) * own.once.tanh()),
    "normalised": lambda own, x, answer: own.o_proj(own.norm(flat(answer))),
    "normalised by hand": lambda own, x, answer: own.o_proj(
        flat(answer) * torch.rsqrt(flat(answer).pow(2).mean(-1, keepdim=True))
    ),
    "bounded where nothing is beyond": lambda own, x, answer: own.o_proj(flat(answer).clamp(-1e4, 1e4) * 1.0),
    "put together again": lambda own, x, answer: own.o_proj(torch.cat(flat(answer).split(3, dim=1), dim=1)),
    "behind something else": lambda own, x, answer: own.o_proj(
        torch.cat([x, flat(answer)], dim=1)[:, x.shape[1] :]
    ),
    "beside something else": lambda own, x, answer: F.linear(
        torch.cat([flat(answer), x], -1), torch.cat([own.o_proj.weight, own.q_proj.weight], -1)
    ),
    "copied into place": copied_into_place,
    "among others": lambda own, x, answer: own.o_proj(torch.cat([flat(answer), x]))[:1],
    "in a mode of the module's own": in_a_mode_of_its_own,
}


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize("name", AS_IT_IS)
def test_an_answer_that_goes_on_is_certified_whatever_the_model_computes_for_it_there(name, kernel):
    for call in read(AS_IT_IS[name], kernel):
        certificate = certify(call, 4)
        assert certificate.verdict is Verdict.CERTIFIED, certificate


def test_only_the_layers_that_change_it_are_partial():
    model = sharp("llama")
    model.layers[1].self_attn = Unfaithful(
        model.config, model.layers[1].self_attn, CHANGED["heads swapped"][0]
    )
    verdicts = [certify(call, 4).verdict for call in record(model, ids()).calls]
    assert verdicts == [Verdict.CERTIFIED, Verdict.PARTIAL, Verdict.CERTIFIED]


def test_what_was_changed_in_any_step_of_generating_is_not_forgotten():
    (call,) = record(sharp("llama"), ids(), Selection(layers=[1])).calls
    joined = JoinedCall(call)
    joined.add(replace(call, reservation="changed"))
    assert certify(joined.call(), 4).reason == "changed"


def test_an_interrupt_leaves_no_mode_behind():
    def interrupt(own: Unfaithful, x: Tensor, answer: Tensor) -> Tensor:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        record(unfaithful(interrupt), ids())
    assert _get_current_function_mode_stack() == []


def test_an_answer_that_a_mode_of_the_module_hides_is_said_to_be_unfollowed():
    model = unfaithful(lambda own, x, answer: own.o_proj(flat(answer)))
    model.layers[1].self_attn.around = Mode
    reasons = [certify(call, 4).reason for call in record(model, ids()).calls]
    assert reasons == ["", UNFOLLOWED, ""]
    assert _get_current_function_mode_stack() == []
