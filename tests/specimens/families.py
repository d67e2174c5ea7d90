"""Tiny models of many families, made from their configs and sharpened, and what an untouched copy answers.

A model as the library initialises it looks almost evenly at everything, so that no mistake shows. These
have weights drawn large enough that their attention is peaked; `sharp` asserts it.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
import transformers as hf
from torch import Tensor, nn

from attnscope.attention import Capture
from attnscope.tokens import Tokens

LAYERS, HEADS, KEY_HEADS, DIM, HIDDEN, TOKENS = 3, 6, 2, 8, 48, 11
WINDOW = 4  # shorter than the input

_PLAIN = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": HIDDEN}
_SIZES = {
    **_PLAIN,
    "vocab_size": 97,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_GROUPED = {**_SIZES, "num_key_value_heads": KEY_HEADS, "head_dim": DIM, "bos_token_id": 1, "eos_token_id": 2}

CONFIGS: dict[str, Callable[[], hf.PreTrainedConfig]] = {
    "bert": lambda: hf.BertConfig(**_SIZES),
    "gpt2": lambda: hf.GPT2Config(
        n_layer=LAYERS,
        n_head=HEADS,
        n_embd=HIDDEN,
        vocab_size=97,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "llama": lambda: hf.LlamaConfig(**_GROUPED),
    "mistral": lambda: hf.MistralConfig(**_GROUPED, sliding_window=WINDOW),
    "gemma2": lambda: hf.Gemma2Config(
        **_GROUPED, sliding_window=WINDOW, attn_logit_softcapping=3.0, query_pre_attn_scalar=5
    ),
    "qwen3": lambda: hf.Qwen3Config(**{**_GROUPED, "head_dim": 10}),
    "gemma3": lambda: hf.Gemma3TextConfig(**_GROUPED, sliding_window=WINDOW, query_pre_attn_scalar=5),
    "modernbert": lambda: hf.ModernBertConfig(
        **_SIZES, local_attention=2 * WINDOW, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2
    ),
    "albert": lambda: hf.AlbertConfig(**_SIZES, embedding_size=20),
    "t5": lambda: hf.T5Config(
        vocab_size=97, d_model=HIDDEN, d_kv=DIM, d_ff=40, num_layers=LAYERS, num_heads=HEADS, pad_token_id=0
    ),
    "gpt_oss": lambda: hf.GptOssConfig(
        **{**_GROUPED, "sliding_window": WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1}
    ),
}
FAMILIES = tuple(CONFIGS)
ENCODERS = ("bert", "modernbert", "albert", "t5")
ROTARY = ("llama", "mistral", "gemma2", "qwen3", "gemma3", "modernbert", "gpt_oss")
ROTATION_SEEN = (
    "llama",
    "mistral",
    "gemma2",
    "qwen3",
    "gemma3",
    "gpt_oss",
)  # have a key projection of their own
FUSABLE = tuple(family for family in FAMILIES if family not in ("gemma2", "gpt_oss"))  # sdpa: no cap, no sink


def plain(family: str) -> nn.Module:
    """The family's model as the library initialises it: almost uniform attention."""
    torch.manual_seed(0)
    config = CONFIGS[family]()
    if family == "t5":
        return hf.T5EncoderModel._from_config(config, attn_implementation="eager").eval()
    return hf.AutoModel.from_config(config, attn_implementation="eager").eval()


def sharp(family: str) -> nn.Module:
    """A fresh copy of the family's model with peaked attention."""
    return copy.deepcopy(_sharp(family))


@cache
def _sharp(family: str) -> nn.Module:
    model = plain(family)
    torch.manual_seed(1)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=HIDDEN**-0.5)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            _queries_and_keys(path, parameter).mul_(2)
    for weights in eager_weights(model, ids()):
        choices = (weights > 0).sum(-1)  # a row of n keys looks even at a largest weight of 1 / n
        peaked = weights.amax(-1)[choices > 1] * choices[choices > 1]
        assert peaked.mean() > 2, f"the tiny {family} is not sharp"
    return model


def _queries_and_keys(path: str, parameter: Tensor) -> Tensor:
    """The part of a parameter that makes queries and keys, perhaps nothing of it."""
    owner = path.split(".")[-2]
    if owner in {"c_attn", "Wqkv"}:  # queries, keys and values side by side
        return parameter.narrow(parameter.shape.index(3 * HIDDEN), 0, 2 * HIDDEN)
    return (
        parameter
        if owner in {"query", "key", "q_proj", "k_proj", "q", "k", "q_norm", "k_norm"}
        else parameter[:0]
    )


def ids(length: int = TOKENS, batch: int = 1, seed: int = 2) -> dict[str, Tensor]:
    """Random token ids without padding."""
    generator = torch.Generator().manual_seed(seed)
    return {"input_ids": torch.randint(3, 97, (batch, length), generator=generator)}


def padded(side: str, length: int = TOKENS, padding: int = 3) -> dict[str, Tensor]:
    """A batch of two: a full row, and one whose `padding` positions on `side` are padding."""
    inputs = ids(length, batch=2)
    mask = torch.ones_like(inputs["input_ids"])
    place = slice(None, padding) if side == "left" else slice(length - padding, None)
    mask[1, place] = 0
    return {"input_ids": inputs["input_ids"] * mask, "attention_mask": mask}


def padding_as_tokens(captured: Capture) -> Capture:
    """The same where nobody was told that tokens are padding: they are queries and keys that see nothing."""

    def told(tokens: Tokens) -> Tokens:
        return replace(tokens, items=tuple(replace(token, padding=False) for token in tokens.items))

    calls = (
        replace(call, query_tokens=(tokens := told(call.query_tokens)), key_tokens=tokens)
        for call in captured.calls
    )
    return replace(captured, calls=tuple(calls))


def twin(model: nn.Module, kernel: str = "eager") -> nn.Module:
    """The same weights in another model object, under `kernel`."""
    other = copy.deepcopy(model)
    other.set_attn_implementation(kernel)
    return other


def eager_weights(model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Per layer `batch head query key`: what an untouched copy of `model` itself returns under eager."""
    with torch.no_grad():
        return twin(model)(**inputs, output_attentions=True).attentions


def full_run(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return model(**inputs).last_hidden_state
