"""A decoder that transformers has no class for: its code stands in the model's own folder.

It multiplies, masks, takes a softmax and multiplies again by itself; nothing but its mask, its head and what
its class can do says that it is a decoder.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from attnscope import demo

LAYERS, HEADS, WIDTH = 3, 4, 24

CODE = """
import torch
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast


class PlainConfig(PretrainedConfig):
    model_type = "plain"

    def __init__(self, vocab_size=100, width=24, num_hidden_layers=3, n_head=4, **kwargs):
        self.vocab_size, self.width = vocab_size, width
        self.num_hidden_layers, self.n_head = num_hidden_layers, n_head
        super().__init__(**kwargs)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head, self.size = config.n_head, config.width // config.n_head
        self.mix = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.mix(x).reshape(batch, length, 3, self.n_head, self.size).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first, self.second = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.wide = nn.Linear(config.width, 2 * config.width)
        self.narrow = nn.Linear(2 * config.width, config.width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.narrow(torch.relu(self.wide(self.second(x))))


class PlainModel(PreTrainedModel):
    config_class = PlainConfig
    base_model_prefix = "model"

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.width)
        self.places = nn.Embedding(64, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.post_init()

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask=None, **kwargs):
        x = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return BaseModelOutputWithPast(last_hidden_state=x)


class PlainForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = PlainConfig
    base_model_prefix = "model"

    def __init__(self, config):
        super().__init__(config)
        self.model = PlainModel(config)
        self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.words

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids, attention_mask=None, **kwargs):
        states = self.model(input_ids).last_hidden_state
        return CausalLMOutputWithPast(logits=self.lm_head(states))
"""


def plain_decoder(folder: Path, *, headless: bool = True, count: str = "n_head") -> Path:
    """A seeded checkpoint with code of its own; `headless` says whether it names a class without its head.

    `count` is what an attention calls the number of its heads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own.py").write_text(
        CODE.replace("self.n_head, self.size", f"self.{count}, self.size"), "utf-8"
    )
    vocabulary = len(
        json.loads((demo.folder("demo-causal") / "tokenizer.json").read_text())["model"]["vocab"]
    )
    classes = {"AutoConfig": "own.PlainConfig", "AutoModelForCausalLM": "own.PlainForCausalLM"}
    classes |= {"AutoModel": "own.PlainModel"} if headless else {}
    config = {
        "model_type": "plain",
        "architectures": ["PlainForCausalLM"],
        "auto_map": classes,
        "vocab_size": vocabulary + 8,
        "width": WIDTH,
        "num_hidden_layers": LAYERS,
        "n_head": HEADS,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(_weights(vocabulary + 8), folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo.folder("demo-causal") / name, folder / name)
    return folder


def _weights(vocabulary: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(11)

    def random(*shape: int, size: float = 0.4) -> torch.Tensor:
        return torch.randn(shape, generator=draw) * size

    weights = {
        "model.words.weight": random(vocabulary, WIDTH, size=1.0),
        "model.places.weight": random(64, WIDTH),
    }
    for layer in range(LAYERS):
        stem = f"model.layers.{layer}"
        for norm in ("first", "second"):
            weights |= {f"{stem}.{norm}.weight": torch.ones(WIDTH), f"{stem}.{norm}.bias": torch.zeros(WIDTH)}
        for name, rows, columns in (
            ("attention.mix", 3 * WIDTH, WIDTH),
            ("attention.out", WIDTH, WIDTH),
            ("wide", 2 * WIDTH, WIDTH),
            ("narrow", WIDTH, 2 * WIDTH),
        ):
            weights |= {f"{stem}.{name}.weight": random(rows, columns), f"{stem}.{name}.bias": random(rows)}
    return weights | {"lm_head.weight": random(vocabulary, WIDTH)}
