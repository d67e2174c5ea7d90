"""A tiny model whose attention is put together from parts, on every route by which attention is read.

Between any two steps of a module, and around it in its block, stands a place where parts may do something to
what passes by. No two axes have the same length. Beside the parts nothing is done at a place, so that what a
route sees of the model without parts is ordinary code. A `tap` is what `truth` looks and perturbs through.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.masking_utils import create_causal_mask
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

VOCABULARY, HIDDEN, HEADS, DIM, VALUE_DIM, TOKENS, LAYERS = 29, 17, 3, 5, 6, 7, 2
SCALING = 0.6

Part = Callable[["Attention", Tensor, "Place"], Tensor]
Tap = Callable[[str, Tensor], Tensor]


class Place(StrEnum):
    """Where in a block something may be done, in the order in which a row comes there."""

    BEFORE = "in the block before the module"
    PRE_HOOK = "in a hook before the module"
    GIVEN = "before the projections"
    QUERY = "on the queries"
    KEY = "on the keys"
    VALUE = "on the values"
    WEIGHTS = "in the kernel, on the weights"
    CONTEXT = "in the kernel, on what it makes of the values"
    ANSWER = "after the kernel"
    COLUMNS = "in a hook before the output projection"
    PROJECTED = "in a hook on the output projection"
    RESULT = "after the output projection"
    HOOK = "in a hook on the module"
    PASSED = "in the block after the module"
    STREAM = "after the residual"

    @property
    def tokens(self) -> int:
        """The axis of the tokens in what passes by here."""
        return 2 if self in _BY_HEAD else 1

    @property
    def heads(self) -> int:
        """The axis of the heads in what passes by here."""
        return 2 if self is Place.ANSWER else 1


_BY_HEAD = (Place.QUERY, Place.KEY, Place.VALUE, Place.WEIGHTS, Place.CONTEXT)


class Attention(nn.Module):
    """Attention with parts at its places; how it comes by its kernel is a matter of the classes below.

    `now` holds what was made so far in this forward, for parts that need it; `twice` calls the kernel a
    second time and puts the two answers together.
    """

    is_causal = False

    def __init__(
        self, config: PreTrainedConfig, parts: Mapping[Place, Sequence[Part]], key_heads: int
    ) -> None:
        super().__init__()
        self.config, self.parts = config, parts
        self.num_key_value_groups = HEADS // key_heads
        self.q_proj = nn.Linear(HIDDEN, HEADS * DIM)
        self.k_proj = nn.Linear(HIDDEN, key_heads * DIM)
        self.v_proj = nn.Linear(HIDDEN, key_heads * VALUE_DIM)
        self.o_proj = nn.Linear(HEADS * VALUE_DIM, HIDDEN)
        self.now: dict[str, Any] = {}
        self.twice: Callable[[Attention, Callable[..., Tensor], Tensor], Tensor] | None = None
        self.returned: Callable[[Tensor], Any] = lambda result: result

    def tap(self, _name: str, tensor: Tensor) -> Tensor:
        """What passes by here, unchanged; `truth` looks and perturbs through it."""
        return tensor

    def at(self, place: Place, tensor: Tensor) -> Tensor:
        for part in self.parts.get(place, ()):
            tensor = part(self, tensor, place)
        return tensor

    def learned(self, name: str, *shape: int, times: float = 1.0) -> nn.Parameter:
        """A parameter of this name, made when it is first asked for: while the model is built."""
        if name not in self._parameters:
            generator = torch.Generator().manual_seed(len(self._parameters))
            made = times * (torch.rand(shape, generator=generator) + 0.5)
            self.register_parameter(name, nn.Parameter(made))
        return self._parameters[name]

    def made(self, x: Tensor, mask: Any, attend: Callable[..., Any]) -> Any:
        """The module's result by way of all places."""
        x = self.at(Place.GIVEN, x)
        query, key, value = (
            each(x).unflatten(-1, (-1, dim)).transpose(1, 2)
            for each, dim in ((self.q_proj, DIM), (self.k_proj, DIM), (self.v_proj, VALUE_DIM))
        )
        self.now |= {"given": x, "value": value, "mask": mask}
        query, key, value = (
            self.tap(place.name, self.at(place, each))
            for place, each in ((Place.QUERY, query), (Place.KEY, key), (Place.VALUE, value))
        )

        def answer_to(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return self.tap("ANSWER", attend(self, query, key, value, mask, scaling=SCALING)[0])

        self.now |= {"query": query, "key": key}
        answer = answer_to(query, key, value)
        if self.twice is not None:
            answer = self.twice(self, answer_to, answer)
        answer = self.at(Place.ANSWER, answer)
        return self.returned(self.at(Place.RESULT, self.o_proj(answer.flatten(2))))


def eager_attention_forward(module, query, key, value, attention_mask, scaling, **_options):
    groups = module.num_key_value_groups
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask[:, :, :, : key.shape[2]]
    weights = module.at(Place.WEIGHTS, torch.softmax(scores, dim=-1))
    output = module.at(Place.CONTEXT, torch.matmul(weights, value))
    return output.transpose(1, 2).contiguous(), weights


class Asking(Attention):
    """It asks transformers' interface for its kernel."""

    def forward(self, x: Tensor, mask: Any = None) -> Any:
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        return self.made(x, mask, attend)


class ByName(Attention):
    """It looks a kernel up by its name where that is not eager, as older remote code does."""

    def forward(self, x: Tensor, mask: Any = None) -> Any:
        attend = eager_attention_forward
        if self.config._attn_implementation != "eager":
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        return self.made(x, mask, attend)


class ByHand(Attention):
    """Its own code multiplies, takes a softmax and multiplies again."""

    def forward(self, x: Tensor, mask: Any = None) -> Any:
        return self.made(x, mask, eager_attention_forward)


ROUTES = {"eager": Asking, "fused": Asking, "tiled": Asking, "named": ByName, "traced": ByHand}


class Block(nn.Module):
    """A residual around the attention and one around two linear layers; the norms before them or behind."""

    def __init__(self, attention: Attention, norm_behind: bool) -> None:
        super().__init__()
        self.attention, self.norm_behind = attention, norm_behind
        self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 23), nn.Linear(23, HIDDEN)

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        at, entered = self.attention.at, x
        self.attention.now = {"entered": entered}
        given = at(Place.BEFORE, x if self.norm_behind else self.first(x))
        result = self.attention(given, mask)
        result = result if isinstance(result, Tensor) else result[0]
        x = at(Place.STREAM, entered + at(Place.PASSED, result))
        x = self.first(x) if self.norm_behind else x
        inner = self.down(torch.relu(self.up(x if self.norm_behind else self.second(x))))
        return self.second(x + inner) if self.norm_behind else x + inner


class Model(nn.Module):
    """An embedding and two blocks."""

    _supports_sdpa = True

    def __init__(self, config: PreTrainedConfig, blocks: Sequence[Block], causal: bool) -> None:
        super().__init__()
        self.config, self.causal = config, causal
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(blocks)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BaseModelOutput:
        x, mask = self.embedding(input_ids), None
        if not self.causal and attention_mask is not None:
            hidden = attention_mask[:, None, None] == 0
            mask = torch.zeros(len(x), 1, *2 * x.shape[1:2]).masked_fill(
                hidden, torch.finfo(torch.float32).min
            )
        if self.causal:
            mask = create_causal_mask(
                config=self.config, inputs_embeds=x, attention_mask=attention_mask, past_key_values=None
            )
        for layer in self.layers:
            x = layer(x, mask)
        return BaseModelOutput(last_hidden_state=x)


def model_of(
    route: str,
    parts: Mapping[int, Mapping[Place, Sequence[Part]]],
    key_heads: int = HEADS,
    causal: bool = False,
    norm_behind: bool = False,
    twice: Callable[..., Tensor] | None = None,
    returned: Callable[[Tensor], Any] = lambda result: (result, None),
) -> Model:
    """The model with these parts in its layers, its attention peaked."""
    torch.manual_seed(3)
    config = PreTrainedConfig(num_attention_heads=HEADS, hidden_size=HIDDEN, num_hidden_layers=LAYERS)
    config.model_type = "constructed"
    config._attn_implementation = "sdpa" if route == "fused" else "eager"
    attentions = [ROUTES[route](config, parts.get(layer, {}), key_heads) for layer in range(LAYERS)]
    for each in attentions:
        each.is_causal, each.returned = causal, returned
    attentions[-1].twice = twice
    model = Model(config, [Block(each, norm_behind) for each in attentions], causal).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.2 * parameter.shape[-1] ** -0.5)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        model.embedding.weight.normal_()
    for each in attentions:
        _hooked(each)
    return model


def _hooked(module: Attention) -> None:
    """The user's own hooks, where there are parts for them."""
    if module.parts.get(Place.PRE_HOOK):
        module.register_forward_pre_hook(lambda own, given: (own.at(Place.PRE_HOOK, given[0]), *given[1:]))
    if module.parts.get(Place.COLUMNS):
        module.o_proj.register_forward_pre_hook(lambda _, given: (module.at(Place.COLUMNS, given[0]),))
    if module.parts.get(Place.PROJECTED):
        module.o_proj.register_forward_hook(lambda _, given, made: module.at(Place.PROJECTED, made))
    if module.parts.get(Place.HOOK):

        def hook(own: nn.Module, _given: Any, result: Any) -> Any:
            return (own.at(Place.HOOK, result[0]), *result[1:])

        module.register_forward_hook(hook)
