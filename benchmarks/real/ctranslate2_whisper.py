"""Whisper tiny.en out of the int8 file that CTranslate2 makes of it."""

import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from make import write
from transformers import WhisperConfig, WhisperFeatureExtractor

TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
START, END, NO_TIMES, BEFORE = 50257, 50256, 50362, 50360  # of the English vocabulary
FUSED = {  # which projections stand in one matrix, one below the other
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
}
NAMES = {
    r"layer_(\d+)/": r"layers.\1.",
    r"self_attention/linear_1": "self_attn.out_proj",
    r"self_attention/layer_norm": "self_attn_layer_norm",
    r"attention/linear_0": "encoder_attn.q_proj",
    r"attention/linear_2": "encoder_attn.out_proj",
    r"attention/layer_norm": "encoder_attn_layer_norm",
    r"ffn/linear_0": "fc1",
    r"ffn/linear_1": "fc2",
    r"ffn/layer_norm": "final_layer_norm",
    r"position_encodings/encodings": "embed_positions.weight",
    r"embeddings/": "embed_tokens.",
    r"gamma$": "weight",
    r"beta$": "bias",
    r"/": ".",
}


def whisper(source: Path, made: Path) -> None:
    """The scales of a weight are what its entries were multiplied with, row by row."""
    stored = read(source / "model.bin")
    weights = dict[str, torch.Tensor]()
    for name, array in stored.items():
        if name.endswith("_scale") or not array.ndim:
            continue
        scale = stored.get(f"{name}_scale", np.ones(1, np.float32)).reshape(-1, *[1] * (array.ndim - 1))
        whole = torch.tensor(array.astype(np.float32) / scale)
        fused = next((key for key in FUSED if f"/{key}/" in name), None)
        if fused is None:
            weights[renamed(name)] = whole
            continue
        for part, rows in zip(FUSED[fused], whole.chunk(len(FUSED[fused])), strict=True):
            weights[renamed(name.replace(fused, part))] = rows
    weights = {name: weight for name, weight in weights.items() if not name.endswith("k_proj.bias")}  # zeros
    width, bins = weights["model.encoder.conv1.weight"].shape[:2]
    ends = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": END, "decoder_start_token_id": START}
    config = WhisperConfig(
        vocab_size=len(weights["model.decoder.embed_tokens.weight"]), d_model=width, num_mel_bins=bins,
        encoder_attention_heads=width // 64, decoder_attention_heads=width // 64, **ends,
    )  # fmt: skip
    write(made, config.to_diff_dict() | {"architectures": ["WhisperForConditionalGeneration"]}, weights)
    told = json.loads((source / "config.json").read_text("utf-8"))
    writing = ends | {
        "alignment_heads": told["alignment_heads"],
        "suppress_tokens": told["suppress_ids"],
        "begin_suppress_tokens": told["suppress_ids_begin"],
        "no_timestamps_token_id": NO_TIMES,
        "prev_sot_token_id": BEFORE,
        "is_multilingual": False,
        "return_timestamps": False,
        "max_length": 448,
    }
    (made / "generation_config.json").write_text(json.dumps(writing), "utf-8", newline="\n")
    WhisperFeatureExtractor(feature_size=bins).save_pretrained(made)
    shutil.copy(source / "tokenizer.json", made)
    added = json.loads((source / "tokenizer.json").read_text("utf-8"))["added_tokens"]
    settings = {
        **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>"),
        "tokenizer_class": "WhisperTokenizer",
        "model_max_length": 448,
        "add_prefix_space": False,
        "extra_special_tokens": [each["content"] for each in added if each["special"]],
    }
    (made / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8", newline="\n")


def renamed(name: str) -> str:
    for old, new in NAMES.items():
        name = re.sub(old, new, name)
    return f"model.{name}"


def read(file: Path) -> dict[str, np.ndarray]:
    """The arrays of a model.bin, aliases left out."""
    content, place = file.read_bytes(), 0

    def take(kind: str) -> Any:
        nonlocal place
        (value,) = struct.unpack_from(f"<{kind}", content, place)
        place += struct.calcsize(f"<{kind}")
        return value

    def text() -> str:
        return str(take(f"{take('H')}s").rstrip(b"\0").decode())

    take("I"), text(), take("I")  # version, kind and revision of the model
    arrays = dict[str, np.ndarray]()
    for _ in range(take("I")):
        name, shape = text(), [take("I") for _ in range(take("B"))]
        kind = TYPES[take("B")]
        size = take("I")
        arrays[name] = np.frombuffer(content, kind, size // np.dtype(kind).itemsize, place).reshape(shape)
        place += size
    return arrays
