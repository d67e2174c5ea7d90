"""What a sentence vector is made of, held against the model's own output and a plain replacing of tokens."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import tiny_bert
from transformers import BertModel, BertTokenizerFast

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Flow

TEXT = "The dog saw the door when it opened."
ENCODER = Path(at.__file__).parent / "demo" / "encoder"


def pooled_plainly(model: BertModel, ids: list[int], how: str) -> np.ndarray:
    """The vector of a text by the model's own output alone."""
    with torch.no_grad():
        output = model(input_ids=torch.tensor([ids]))
    vectors = output.last_hidden_state[0].double().numpy()
    if how == "pooler":
        return output.pooler_output[0].double().numpy()
    return {"mean": vectors.mean(axis=0), "first": vectors[0], "last": vectors[-1]}[how]


@pytest.fixture(scope="module")
def plain() -> BertModel:
    return BertModel.from_pretrained(ENCODER, attn_implementation="eager").eval()


@pytest.mark.parametrize("how", ["mean", "first", "last", "pooler"])
def test_how_far_it_turns_is_one_less_the_cosine_of_the_models_own_vector(plain: BertModel, how: str) -> None:
    flow = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read(TEXT).flow(f"pooled:{how}")
    ids = list(flow.tokens.ids)
    assert flow.ablated is not None
    before, mask = pooled_plainly(plain, ids, how), flow.ablated.replacement_id
    assert mask is not None
    tried = np.flatnonzero(np.isfinite(flow.ablated.effects))
    assert tried.tolist() == list(range(1, len(ids) - 1))  # all but [CLS] and [SEP]
    for place in tried:
        after = pooled_plainly(plain, [*ids[:place], mask, *ids[place + 1 :]], how)
        cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
        assert flow.ablated.effects[place] == pytest.approx(1 - cosine, abs=1e-6)
    assert (flow.query, flow.ablated.answer) == (None, "")
    assert flow.pooled is not None
    assert flow.pooled.how == how


def test_rows_of_a_mean_are_the_means_of_the_rows_of_all_tokens(plain: BertModel) -> None:
    reading = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read(TEXT)
    whole = reading.flow("pooled:mean")
    each = [reading.flow(place) for place in range(len(reading.tokens))]
    for name in ("raw", "rollout", "by_norm", "zeroed"):
        mean = np.mean([getattr(one, name) for one in each], axis=0)
        assert getattr(whole, name) == pytest.approx(mean, abs=1e-9), name
    first = reading.flow("pooled:first")
    for name in ("raw", "rollout", "by_norm", "zeroed", "flow"):
        assert getattr(first, name) == pytest.approx(getattr(each[0], name), abs=1e-6), name
    assert whole.flow is not None
    assert 0 < whole.flow.max() <= 1


def test_the_tokens_own_shares_of_a_mean_sum_to_the_whole_of_it(plain: BertModel) -> None:
    flow = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read(TEXT).flow("pooled:mean")
    with torch.no_grad():
        vectors = plain(input_ids=torch.tensor([flow.tokens.ids])).last_hidden_state[0].double().numpy()
    mean = vectors.mean(axis=0)
    along = vectors @ mean / (mean @ mean) / len(vectors)
    assert flow.pooled is not None
    assert flow.pooled.own == pytest.approx(along, abs=1e-6)
    assert flow.pooled.own.sum() == pytest.approx(1)
    assert "own vector" in flow.methods


def as_sentence_model(folder: Path, path: str = "", **modes: bool) -> Path:
    """What sentence-transformers writes beside a model, which is in the folder or at `path` within it."""
    kinds = [{"idx": 0, "path": path, "type": "sentence_transformers.models.Transformer"},
             {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(kinds))
    (folder / "1_Pooling").mkdir()
    said = {f"pooling_mode_{name}": on for name, on in modes.items()} | {"word_embedding_dimension": 8}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    return folder


def flow_of(folder: Path, name: str = "pooled") -> Flow:
    return at.load(str(folder)).read(TEXT).flow(name)


def test_what_stands_beside_the_checkpoint_says_how_it_pools(tmp_path: Path) -> None:
    first = as_sentence_model(tiny_bert(tmp_path / "first"), cls_token=True, mean_tokens=False)
    mean = as_sentence_model(tiny_bert(tmp_path / "mean"), cls_token=False, mean_tokens=True)
    old = tiny_bert(tmp_path / "old" / "0_Transformer")
    as_sentence_model(old.parent, old.name, cls_token=True)
    beside = tiny_bert(old.parent / "another")
    both = as_sentence_model(tiny_bert(tmp_path / "both"), max_tokens=True, mean_tokens=True)
    found = [flow_of(each).pooled.how for each in (first, mean, old, beside)]  # type: ignore[union-attr]
    assert found == ["first", "mean", "first", "pooler"], "a folder of another name has a pooler of its own"
    with pytest.raises(InputError, match="pools by max_tokens and mean_tokens, which is no sum of vectors"):
        flow_of(both)
    assert flow_of(both, "pooled:mean").pooled.how == "mean"  # type: ignore[union-attr]


def test_a_model_without_a_pooler_is_asked_how(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "plain")
    reading = at.load(str(folder)).read(TEXT)
    reading._model.module.base_model.pooler = None
    with pytest.raises(InputError, match="makes no one vector of a text: name how, --from pooled:mean"):
        reading.flow("pooled")
    with pytest.raises(InputError, match="has no pooler: --from pooled:mean, pooled:first, pooled:last"):
        reading.flow("pooled:pooler")
    with pytest.raises(InputError, match="no pooling 'max': pooled:mean, pooled:first"):
        reading.flow("pooled:max")
    with pytest.raises(InputError, match="stands behind all layers: leave --layer out"):
        reading.flow("pooled:mean", layers="0-1")


def test_a_word_of_the_text_that_is_called_so_is_that_word() -> None:
    reading = at.load("demo").read("The pooled door opened.")
    word = reading.flow("pooled")
    assert (word.query, word.pooled) == (7, None)
    assert word.query_span == (2, 3, 4, 5, 6, 7), "its pieces"
    assert reading.flow("pooled:mean").query is None


def test_many_sentences_are_asked_at_once() -> None:
    texts = [TEXT, "The old man lost the red box in the river.", "The king slept."]
    model = at.load("demo")
    told = model.prompts(texts).flow("pooled:mean")
    i = next(i for i, each in enumerate(told.figures) if each.name == "own vector")
    for k, text in enumerate(texts):
        alone = model.read(text).flow("pooled:mean").ablated
        assert alone is not None
        own = next(each.correlation for each in alone.trust if each.method == "own vector")
        assert told.values[i, k] == pytest.approx(own, nan_ok=True)
