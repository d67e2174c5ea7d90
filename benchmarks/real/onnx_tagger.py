"""A DistilBERT that tags tokens, out of the int8 graph of ONNX Runtime: needs the package onnx."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from make import write
from onnx import numpy_helper

QUANTISED = ("DequantizeLinear", "QuantizeLinear")


def tagger(source: Path, made: Path) -> None:
    """Vectors are in the graph by name; a matrix has the name of the bias that is added behind it."""
    graph = onnx.load(source / "tagger.onnx").graph
    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    whole = {name: numbers(node, stored) for name, node in maker.items() if is_weight(node, stored)}

    def behind(name: str) -> str:
        """Where it comes from, rounding left aside."""
        while name in maker and maker[name].op_type in QUANTISED:
            name = maker[name].input[0]
        return name

    weights = {
        name: array
        for name, array in stored.items()
        if name.startswith(("distilbert", "classifier")) and array.ndim == 1 and array.dtype == np.float32
        if "scale" not in name and "quantized" not in name
    }
    for node in [each for each in graph.node if each.op_type == "Add"]:
        bias = next((each for each in map(behind, node.input) if each in weights), None)
        products = [maker[each] for each in map(behind, node.input) if each in maker]
        if bias is not None and products and products[0].op_type == "MatMul":
            weights[bias.replace(".bias", ".weight")] = whole[products[0].input[1]].T
    for name in ("word_embeddings", "position_embeddings"):
        (table,) = (array for key, array in whole.items() if name in key)
        weights[f"distilbert.embeddings.{name}.weight"] = table
    tags = json.loads((source / "tag_vocab.json").read_text("utf-8"))["tags"]
    config = {
        "model_type": "distilbert",
        "architectures": ["DistilBertForTokenClassification"],
        "vocab_size": 28996,
        "id2label": dict(enumerate(tags)),
        "label2id": {tag: i for i, tag in enumerate(tags)},
    }
    write(made, config, {name: torch.tensor(np.ascontiguousarray(each)) for name, each in weights.items()})
    shutil.copy(source / "tokenizer.json", made)
    special = {f"{each}_token": f"[{each.upper()}]" for each in ("unk", "cls", "sep", "pad", "mask")}
    settings = special | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    (made / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8", newline="\n")


def is_weight(node: Any, stored: dict[str, np.ndarray]) -> bool:
    return node.op_type == "DequantizeLinear" and node.input[0] in stored


def numbers(node: Any, stored: dict[str, np.ndarray]) -> np.ndarray:
    """What a weight of few bits stands for, with a scale for all of it or for each entry of one axis."""
    quantised, scale, zero = (stored[name] for name in node.input)
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    shape = [-1 if each == axis and scale.size > 1 else 1 for each in range(quantised.ndim)]
    away = quantised.astype(np.float32) - zero.astype(np.float32).reshape(shape)
    return away * scale.reshape(shape)
