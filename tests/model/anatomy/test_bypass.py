"""What looks like attention from its code alone: classes that are, classes that are not, and made-up ones."""

import pytest
import torch
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import BertLayer, BertSelfAttention
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Layer, DisentangledSelfAttention
from transformers.models.gemma3n.modeling_gemma3n import Gemma3nAudioAttention
from transformers.models.mask2former.modeling_mask2former import Mask2FormerHungarianMatcher
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.squeezebert.modeling_squeezebert import SqueezeBertSelfAttention
from transformers.models.wavlm.modeling_wavlm import WavLMAttention
from transformers.models.xlnet.modeling_xlnet import XLNetLMHeadModel, XLNetRelativeAttention

from attnscope.model.anatomy.bypass import looks_traceable


def helper(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT, dim=-1)


scripted = torch.jit.script(helper)


class WithHelper(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return helper(q, k) @ v


class WithScriptedHelper(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scripted(q, k) @ v


class Inherits(WithHelper):
    pass


class ScoresOnly(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return helper(q, k)


class LogProbabilities(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.log_softmax(q @ k.mT, dim=-1) @ v


@pytest.mark.parametrize(
    "attention",
    [
        DisentangledSelfAttention,
        XLNetRelativeAttention,
        WavLMAttention,  # one call of torch's multi-head attention
        SqueezeBertSelfAttention,  # its products stand in a module of their own
        Gemma3nAudioAttention,  # so does one of these
        nn.MultiheadAttention,
        WithHelper,
        WithScriptedHelper,
        Inherits,
    ],
)
def test_attention_past_the_interface_is_seen(attention):
    assert looks_traceable(attention)


@pytest.mark.parametrize(
    "other",
    [
        BertSelfAttention,  # asks the interface
        BertLayer,
        DebertaV2Layer,
        XLNetLMHeadModel,
        MixtralTopKRouter,
        Mask2FormerHungarianMatcher,
        ScoresOnly,
        LogProbabilities,
        nn.Softmax,
        nn.Linear,
    ],
)
def test_what_is_none_or_asks_the_interface_is_not(other):
    assert not looks_traceable(other)
