"""What a capture says about its tokens, and the output projection that reads a kernel's answer."""

from collections.abc import Callable

import pytest
import torch
import transformers
import transformers as hf
from families import HEADS, HIDDEN, KEY_HEADS, ids, sharp
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from attnscope.capture import Selection, record
from attnscope.measures.rows import moved_norms


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """Word pieces with a start token, made on the spot."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "door": 3, "clos": 4, "##ing": 5, "the": 6}
    pieces = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.pre_tokenizer = Whitespace()
    pieces.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]"
    )


@pytest.mark.parametrize(("boxes", "told"), [(4, ("7", "5", "9")), (3, ("0", "1", "2"))])
def test_words_are_not_told_from_boxes_that_are_as_many(boxes, told):
    torch.manual_seed(0)
    config = transformers.LxmertConfig(
        vocab_size=97, hidden_size=24, num_attention_heads=3, intermediate_size=30, l_layers=1, x_layers=1,
        r_layers=1, visual_feat_dim=13,
    )  # fmt: skip
    inputs = {"input_ids": torch.tensor([[7, 5, 9]]), "visual_feats": torch.randn(1, boxes, 13)}
    inputs["visual_pos"] = torch.rand(1, boxes, 4)
    model = transformers.LxmertModel(config).eval()
    for tower in ("layer", "lang_self_att"):
        assert record(model, inputs, Selection(tower=tower)).calls[0].query_tokens.names == told
    (looking,) = record(model, inputs, Selection(tower="visn_self_att")).calls
    assert looking.query_tokens.names == tuple(map(str, range(boxes)))


LAYER = 1
OF_LAYER: dict[str, Callable[[nn.Module, int], nn.Module]] = {
    "bert": lambda model, layer: model.encoder.layer[layer].attention.output.dense,
    "gpt2": lambda model, layer: model.h[layer].attn.c_proj,
    "t5": lambda model, layer: model.encoder.block[layer].layer[0].SelfAttention.o,
    "llama": lambda model, layer: model.layers[layer].self_attn.o_proj,
    "albert": lambda model, layer: model.encoder.albert_layer_groups[0].albert_layers[0].attention.dense,
    "modernbert": lambda model, layer: model.layers[layer].attn.Wo,
    "gpt_oss": lambda model, layer: model.layers[layer].self_attn.o_proj,
    "gptj": lambda model, layer: model.h[layer].attn.out_proj,  # its operations are traced
}


def model_of(family: str) -> nn.Module:
    if family != "gptj":
        return sharp(family)
    torch.manual_seed(0)
    config = hf.GPTJConfig(
        n_layer=3, n_head=HEADS, n_embd=HIDDEN, vocab_size=97, n_positions=64, rotary_dim=4, n_inner=40
    )
    return hf.GPTJModel._from_config(config, attn_implementation="eager").eval()


def by_hand(part: nn.Module, head: int) -> Tensor:
    """The rows of a head, cut out of the module's weight."""
    weight = part.weight.detach()
    rows = weight if isinstance(part, hf.pytorch_utils.Conv1D) else weight.T
    dim = len(rows) // HEADS
    return rows[head * dim : (head + 1) * dim]


def seen_by_hand(model: nn.Module, part: nn.Module, inputs: dict[str, Tensor], layer: int) -> Tensor:
    """What the module returned in the layer's run, for the first text."""
    made: list[Tensor] = []
    handle = part.register_forward_hook(lambda _part, _given, output: made.append(output[0]))
    with torch.no_grad():
        model(**inputs)
    handle.remove()
    return made[layer if len(made) > 1 else 0]  # of a module that serves every layer, the layer's turn


@pytest.mark.parametrize("family", OF_LAYER)
def test_each_head_has_its_rows_of_the_module_that_reads_the_answer(family: str) -> None:
    model = model_of(family)
    call = record(model, ids(), Selection([LAYER], projections=True)).call(LAYER)
    assert call.projection is not None
    for head in range(HEADS):
        assert torch.equal(call.projection[head], by_hand(OF_LAYER[family](model, LAYER), head))


@pytest.mark.parametrize("family", OF_LAYER)
def test_what_the_heads_move_adds_up_to_what_the_layer_returns(family: str) -> None:
    model = model_of(family)
    part = OF_LAYER[family](model, LAYER)
    call = record(model, ids(batch=2), Selection([LAYER], projections=True)).call(LAYER)
    made = seen_by_hand(model, part, ids(batch=2), LAYER)
    moved = torch.zeros(made.shape)
    for head, weights in call.weights.items():
        moved += weights @ (call.v[call.key_head(head)] @ call.projection[head])
    if part.bias is not None:
        moved += part.bias.detach()
    assert torch.allclose(moved, made, atol=2e-5 * float(made.abs().max()))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_lengths_of_what_is_moved_are_those_of_a_slow_loop(family: str) -> None:
    call = record(sharp(family), ids(), Selection([LAYER], projections=True)).call(LAYER)
    found = moved_norms(call.v, call.projection)
    shared = HEADS // KEY_HEADS if family == "llama" else 1
    assert found.shape == (HEADS, 11)
    for head in range(HEADS):
        for key in range(11):
            moved = [0.0] * HIDDEN
            for dim, value in enumerate(call.v[head // shared, key].tolist()):
                for place, factor in enumerate(call.projection[head, dim].tolist()):
                    moved[place] += value * factor
            assert float(found[head, key]) == pytest.approx(sum(x * x for x in moved) ** 0.5, rel=1e-6)


class Bent(nn.Linear):
    """More than a product: what it multiplies was read before it was changed."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).tanh()


class Twice(nn.Module):
    """Two modules read the same answer, as where an adapter stands beside a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) + self.other(x)


def between(change: Callable[[Tensor], Tensor]) -> nn.Module:
    part = nn.Linear(HIDDEN, HIDDEN)
    part.register_forward_pre_hook(lambda _part, given: (change(given[0]),))
    return part


NONE = {
    "a gate comes before": lambda: between(lambda x: x * x.sigmoid()),
    "a norm comes before": lambda: between(lambda x: x / x.norm(dim=-1, keepdim=True)),
    "heads are exchanged before": lambda: between(lambda x: x.roll(8, -1)),
    "tokens are exchanged before": lambda: between(lambda x: x.flip(1)),
    "more than a product": lambda: Bent(HIDDEN, HIDDEN),
    "two read it": Twice,
    "every head has the same": lambda: with_weight(torch.randn(HIDDEN, 8).repeat(1, HEADS)),
}


def with_weight(weight: Tensor) -> nn.Module:
    part = nn.Linear(HIDDEN, HIDDEN)
    part.weight.data.copy_(weight)
    return part


@pytest.mark.parametrize("case", NONE)
def test_where_there_is_no_such_matrix_none_is_told(case: str) -> None:
    torch.manual_seed(3)
    model = sharp("llama")
    model.layers[LAYER].self_attn.o_proj = NONE[case]()
    captured = record(model, ids(), Selection([0, LAYER], projections=True))
    assert captured.call(0).projection is not None
    assert captured.call(LAYER).projection is None
