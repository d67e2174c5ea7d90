"""A process of its own: tiny models of seven families, hastened or not, and what they compute, as digests.

    python families.py hastened|plain FOLDER

Prints a line for each family, and then which of the heavy modules that attention never uses were loaded.
"""

import hashlib
import os
import sys

from attnscope.process import startup

HOW, FOLDER = sys.argv[1:]
HEAVY = ("scipy.optimize", "sympy", "torch._dynamo", "torch.distributed.fsdp", "torch.distributed.tensor")
os.environ["ATTNSCOPE_CACHE"] = FOLDER
if HOW == "hastened":
    startup.hasten()

import torch  # noqa: E402

with startup.lean_loading():
    import transformers as t

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
BOTH = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
WIDE = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "vocab_size": 50}
SPECIAL = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2}
WORDS = {"input_ids": torch.tensor([[5, 9, 2, 31, 7]])}
TARGET = {"decoder_input_ids": torch.tensor([[2, 8, 11]])}


def families():
    yield t.BertForMaskedLM, t.BertConfig(vocab_size=50, **SIZE), WORDS
    yield t.GPT2LMHeadModel, t.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=4), WORDS
    yield t.LlamaForCausalLM, t.LlamaConfig(vocab_size=50, num_key_value_heads=2, **SIZE), WORDS
    yield t.BartForConditionalGeneration, t.BartConfig(**BOTH, **WIDE, **SPECIAL), WORDS | TARGET
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4, "vocab_size": 50}
    yield t.T5ForConditionalGeneration, t.T5Config(**sizes, decoder_start_token_id=0), WORDS | TARGET
    whisper = t.WhisperConfig(**BOTH, **WIDE, **SPECIAL, num_mel_bins=8, max_source_positions=20)
    yield (
        t.WhisperForConditionalGeneration,
        whisper,
        {"input_features": torch.arange(320.0).view(1, 8, 40)} | TARGET,
    )
    picture = {"pixel_values": torch.linspace(-1, 1, 3 * 8 * 8).view(1, 3, 8, 8)}
    yield t.ViTForImageClassification, t.ViTConfig(image_size=8, patch_size=4, **SIZE), picture


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each)


def digest(kind, config, inputs):
    """Of all that a checkpoint, written and loaded again, returns, and of what it writes."""
    folder = os.path.join(FOLDER, kind.__name__)
    torch.manual_seed(0)
    if not os.path.isdir(folder):
        kind(config).save_pretrained(folder)
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        found = list(tensors(model(**inputs, output_attentions=True)))
    if kind in (t.GPT2LMHeadModel, t.LlamaForCausalLM):
        found.append(model.generate(**inputs, max_new_tokens=3, do_sample=False, pad_token_id=0))
    made = hashlib.sha256(b"".join(each.numpy().tobytes() for each in found))
    return f"{len(found)} {made.hexdigest()}"


with startup.lean_loading():
    for kind, config, inputs in families():
        print(kind.__name__, digest(kind, config, inputs), flush=True)
print("loaded", *(name for name in HEAVY if name in sys.modules))
