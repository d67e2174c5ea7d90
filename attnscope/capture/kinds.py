"""What a mask tells of the kind of attention, where the code of a model says nothing of it.

Modules of transformers state their kind; CLIP's text encoder is one though its mask is causal. Of code that a
model brings along nothing is known, and there an attention that no query ever looks ahead in is a decoder's.
"""

from dataclasses import replace

import torch
from torch import nn

from attnscope.attention import AttentionCall
from attnscope.results import Kind


def of_kind_seen(call: AttentionCall, module: nn.Module) -> AttentionCall:
    """The call of `module` as a decoder's where it is called an encoder's only for want of knowledge."""
    stated = type(module).__module__.startswith("transformers.") or hasattr(module, "is_causal")
    guessed = call.kind is Kind.ENCODER and not stated
    return replace(call, kind=Kind.DECODER) if guessed and looks_back_only(call) else call


def looks_back_only(call: AttentionCall) -> bool:
    """Whether no query of any head may look at a later position, and some may look at an earlier one."""
    if call.allowed is None or call.allowed.shape[-1] != call.allowed.shape[-2]:
        return False
    behind = torch.ones_like(call.allowed).tril(-1)
    ahead = behind.transpose(-1, -2)
    return bool((call.allowed & behind).any()) and not bool((call.allowed & ahead).any())
