"""What a capture says about its tokens and its origin when nobody tells it more than model and inputs."""

import pytest
import torch
import transformers
from families import ids, sharp, twin
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from attnscope.capture import Labels, Selection, record
from attnscope.capture.following.describe import Sides
from attnscope.errors import InputError
from attnscope.results import Kind
from attnscope.tokens import Token, Tokens


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


def test_tokens_of_a_tokenizers_result_are_known_by_their_pieces(tokenizer):
    inputs = tokenizer("closing the door", return_tensors="pt")
    (call,) = record(sharp("bert"), inputs, Selection(layers=[0])).calls
    assert call.query_tokens.labels == call.key_tokens.labels == ("[CLS]", "clos", "##ing", "the", "door")
    assert call.query_tokens.position("door") == 4
    assert call.query_tokens.items[0].special
    with pytest.raises(InputError, match="'1-2 closing' is 2 tokens, 1 clos, 2 ##ing"):
        call.query_tokens.position("closing")


def test_each_row_of_a_batch_has_its_own_tokens(tokenizer):
    inputs = tokenizer(["closing", "the door the door"], return_tensors="pt", padding=True)
    captured = record(sharp("bert"), inputs, Selection(layers=[0], row=1))
    assert captured.calls[0].query_tokens.labels == ("[CLS]", "the@1", "door@2", "the@3", "door@4")
    assert captured.provenance.token_ids == (2, 6, 3, 6, 3)
    assert record(sharp("bert"), inputs, Selection(layers=[0])).calls[0].query_tokens.ids == (2, 4, 5, 0, 0)


def test_labels_keep_the_capitals_of_a_text_that_is_handed_in_beside_its_tokens(tokenizer):
    tokenizer.backend_tokenizer.normalizer = Lowercase()
    texts = "CLOSING The door", "The CLOSING"
    inputs = tokenizer(list(texts), return_tensors="pt", padding=True)
    for row, labels in enumerate(
        [("[CLS]", "CLOS", "##ING", "The", "door"), ("[CLS]", "The", "CLOS", "##ING")]
    ):
        told = Labels(texts=(texts[row],))
        (call,) = record(sharp("bert"), inputs, Selection(layers=[0], row=row), told).calls
        assert call.query_tokens.labels[: len(labels)] == labels
        assert call.query_tokens.sentence == texts[row]
    (call,) = record(sharp("bert"), inputs, Selection(layers=[0])).calls
    assert call.query_tokens.labels == ("[CLS]", "clos", "##ing", "the", "door")


def test_tokens_that_are_handed_in_are_used_as_they_are():
    mine = Tokens(("x" * 11,), tuple(Token(i, "x", "x", (i, i + 1), i) for i in range(11)))
    captured = record(sharp("bert"), ids(), Selection(layers=[0]), Labels(tokens=mine))
    assert captured.calls[0].query_tokens is mine
    assert captured.provenance.token_ids == mine.ids


def test_inputs_without_ids_have_numbered_positions() -> None:
    embedded = {"inputs_embeds": torch.randn(1, 11, 48)}
    (call,) = record(sharp("bert"), embedded, Selection(layers=[0])).calls
    assert call.query_tokens.names == call.key_tokens.names == tuple(str(i) for i in range(11))


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [("eager", torch.float32), ("sdpa", torch.float32), ("eager", torch.bfloat16)],
    ids=str,
)
def test_provenance_is_that_of_the_model_object(kernel, dtype):
    model = twin(sharp("mistral"), kernel).to(dtype)
    told = record(model, ids(), Selection(layers=[0])).provenance
    assert (told.architecture, told.kernel, told.route) == ("MistralModel", kernel, "takeover")
    assert (told.device, told.dtype) == ("cpu", str(dtype).removeprefix("torch."))
    assert (told.revision, told.digest, told.demo, told.source) == (None, None, False, "unpinned")
    assert told.versions["torch"] == torch.__version__
    assert told.versions["transformers"] == transformers.__version__


def test_patches_are_not_called_after_a_text_that_has_as_many_tokens():
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 30}
    text = {**sizes, "num_attention_heads": 4, "vocab_size": 97, "max_position_embeddings": 16}
    vision = {**sizes, "num_attention_heads": 3, "image_size": 32, "patch_size": 16}
    torch.manual_seed(0)
    model = transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    ).eval()
    inputs = {"input_ids": torch.tensor([[7, 5, 9, 11, 96]]), "pixel_values": torch.randn(1, 3, 32, 32)}
    (words,) = record(model, inputs, Selection(layers=[0], tower="text_model")).calls
    (patches,) = record(model, inputs, Selection(layers=[0], tower="vision_model")).calls
    assert words.query_tokens.ids == words.key_tokens.ids == (7, 5, 9, 11, 96)
    assert patches.q.shape[1] == 5  # the class token and 2 x 2 patches: as many as there are words
    assert patches.query_tokens.names == patches.key_tokens.names == ("0", "1", "2", "3", "4")


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


def test_keys_of_cross_attention_are_not_called_after_the_queries_that_are_as_many():
    queries, keys = Sides(None, Tokens((), (Token(7, "x", "x", None, None),) * 3)).of(Kind.CROSS, 3, 3)
    assert queries.ids == (7, 7, 7)
    assert keys.names == ("0", "1", "2")
