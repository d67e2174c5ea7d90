"""What reaches a token, a patch, a frame or a pooled vector, by hand on the model's own modules."""

import copy
import json
from pathlib import Path

import families
import media_models as media
import numpy as np
import pytest
import soundfile
import torch
import transformers as hf
from checkpoints import tiny_bert
from PIL import Image
from transformers import BertForPreTraining, BertModel, BertTokenizerFast, LlamaForCausalLM

import attnscope as at
from attnscope.analysis.inputs import replacing
from attnscope.capture.intervening import value_zeroing
from attnscope.errors import CertificateError, InputError
from attnscope.results import Flow
from attnscope.results.claims.attributed import GRADIENT, INTEGRATED
from attnscope.session.questions import replacing as instead
from attnscope.tokens import Patches
from attnscope.verbs.flow import answer as asked
from attnscope.verbs.flow.sheet import sheet

DEMO = Path(at.__file__).parent / "demo"
TEXT = "I was watching the door when [MASK] opened."
MASK, QUERY = 4, 7


@pytest.fixture(scope="module")
def masked() -> at.Reading:
    return at.load("demo").read(TEXT)


@pytest.fixture(scope="module")
def translated() -> at.Reading:
    return at.load("demo-translate").read("I saw the red door.", target="j'ai vu la porte rouge.")


@torch.no_grad()
def test_rollout_and_effects_are_those_of_the_models_own_attentions_and_logits(masked: at.Reading) -> None:
    found = masked.flow("[MASK]")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    ids = torch.tensor([masked.tokens.ids])
    output = model(ids, output_attentions=True)
    reached = torch.eye(ids.shape[1])
    for weights in output.attentions:
        reached = (weights[0].mean(0) + torch.eye(ids.shape[1])) / 2 @ reached
    assert found.rollout[-1] == pytest.approx(reached[QUERY].numpy(), abs=1e-5)
    assert found.raw[-1] == pytest.approx(output.attentions[-1][0, :, QUERY].mean(0).numpy(), abs=1e-5)
    before = output.prediction_logits[0, QUERY].log_softmax(-1)
    assert found.ablated is not None
    assert found.ablated.answer == "it"
    assert found.ablated.probability == pytest.approx(float(before.max().exp()), abs=1e-5)
    expected = np.full(ids.shape[1], np.nan)
    for place in (1, 2, 3, 4, 5, 6, 8, 9):  # neither special ones nor the query
        changed = ids.clone()
        changed[0, place] = MASK
        after = model(changed).prediction_logits[0, QUERY].log_softmax(-1)
        expected[place] = before.max() - after[before.argmax()]
    np.testing.assert_allclose(found.ablated.effects, expected, atol=1e-4)
    assert np.nanmax(expected) == expected[5] > 0.1  # the door
    assert found.by_norm is not None
    assert found.flow is not None
    assert [each.method for each in found.ablated.trust] == [*found.methods, "distance alone"]
    of_attention = [each for each in found.methods if each not in (GRADIENT, INTEGRATED)]
    assert len(of_attention) == 6
    for shares in (found.methods[each] for each in of_attention):
        assert shares.sum() == pytest.approx(1.0, abs=1e-6)
    assert found.verdict == "certified"


@torch.no_grad()
def test_value_zeroing_is_that_of_a_whole_run_for_each_layer_and_token(masked: at.Reading) -> None:
    found = masked.flow("[MASK]")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    ids = torch.tensor([masked.tokens.ids])
    before = model(ids, output_hidden_states=True).hidden_states
    reached = np.eye(count := ids.shape[1])
    assert found.zeroed is not None
    for number, layer in enumerate(model.bert.encoder.layer):
        turned = np.zeros((count, count))
        for key in range(count):
            handle = layer.attention.self.value.register_forward_hook(
                lambda _module, _given, made, key=key: made.index_fill(1, torch.tensor([key]), 0.0)
            )
            after = model(ids, output_hidden_states=True).hidden_states[number + 1][0].double()
            handle.remove()
            turned[:, key] = (
                1 - torch.cosine_similarity(before[number + 1][0].double(), after, dim=-1).numpy()
            )
        reached = turned / turned.sum(axis=1, keepdims=True) @ reached
        assert found.zeroed[number] == pytest.approx(reached[QUERY], abs=2e-5)
    assert found.zeroed[-1].argmax() != found.rollout[-1].argmax(), "it is another view than rollout"
    assert found.zeroing is not None
    assert (found.zeroing.read_back, found.zeroing.verdict) == (4, "certified")


def test_the_lead_of_an_answer_over_another_is_what_every_column_measures(masked: at.Reading) -> None:
    """By hand: tokens masked one by one, the slope of the lead at the embeddings, what columns sum to."""
    found = masked.flow("[MASK]", answer="it", against="they")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    tokenizer = BertTokenizerFast.from_pretrained(DEMO / "encoder")
    it, they = tokenizer.convert_tokens_to_ids(["it", "they"])
    ids = torch.tensor([masked.tokens.ids])

    def lead(**given: torch.Tensor) -> torch.Tensor:
        logits = model(**given).prediction_logits[0, QUERY]
        return logits[it] - logits[they]

    places = [1, 2, 3, 4, 5, 6, 8, 9]
    with torch.no_grad():
        untouched, costs = float(lead(input_ids=ids)), []
        for place in places:
            changed = ids.clone()
            changed[0, place] = MASK
            costs.append(untouched - float(lead(input_ids=changed)))
        every = ids.clone()
        every[0, places] = MASK
        all_at_once = untouched - float(lead(input_ids=every))
    assert found.ablated is not None
    assert found.ablated.lead == pytest.approx(untouched, abs=1e-4)
    assert np.isnan(found.ablated.probability)
    assert (found.ablated.answer, found.ablated.against, found.ablated.unit) == ("it", "they", "logits")
    np.testing.assert_allclose(found.ablated.effects[places], costs, atol=1e-4)
    embedded = model.get_input_embeddings()(ids).detach().requires_grad_()
    (slope,) = torch.autograd.grad(lead(inputs_embeds=embedded), embedded)
    by_hand = (slope * embedded).sum(-1)[0].detach().numpy()
    by_name = {each.method: each for each in found.attributed}
    np.testing.assert_allclose(by_name[GRADIENT].values, by_hand, atol=1e-3)
    assert by_name[INTEGRATED].whole == pytest.approx(all_at_once, abs=1e-3)
    assert np.nansum(by_name[INTEGRATED].values) == pytest.approx(
        all_at_once, abs=0.01 * abs(all_at_once) + 0.01
    )
    assert found.text(width=300).startswith("“it” over “they” at [MASK] depends most on “door”: ")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"answer": "the door"}, "has no token 'the door': it would write the door"),
        ({"against": "it"}, "--against 'it' is the answer itself: name another one"),
        ({"answer": "they", "against": "they"}, "--against 'they' is the answer itself"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused(masked: at.Reading, how: dict, why: str) -> None:
    with pytest.raises(InputError, match=why):
        masked.flow("[MASK]", **how)


@torch.no_grad()
def test_from_several_tokens_of_a_decoder_it_is_the_mean_of_their_rows(translated: at.Reading) -> None:
    found = translated.flow("la porte", kind="decoder")
    places = list(found.query_span)
    assert len(places) == 2
    assert found.query == places[-1]
    opened = translated._whole()  # the weights that the untouched model itself returns
    module, before = opened.model.module, opened.model.module.config._attn_implementation
    module.set_attn_implementation("eager")
    layers = module(**opened.inputs, output_attentions=True).decoder_attentions
    module.set_attn_implementation(before)
    reached = torch.eye(layers[0].shape[-1])
    for weights in layers:
        reached = (weights[0].mean(0) + torch.eye(len(reached))) / 2 @ reached
    assert found.rollout[-1] == pytest.approx(reached[places].mean(0).numpy(), abs=1e-5)
    assert found.raw[-1] == pytest.approx(layers[-1][0, :, places].mean((0, 1)).numpy(), abs=1e-5)
    assert found.ablated is not None
    assert np.isnan(found.ablated.effects[places]).all(), "none of them is replaced"
    single = translated.flow(f"@{places[-1]}", kind="decoder")
    others = np.setdiff1d(np.arange(len(found.tokens)), places)
    np.testing.assert_allclose(found.ablated.effects[others], single.ablated.effects[others], atol=1e-5)


def test_causal_attention_brings_nothing_from_later_tokens() -> None:
    found = at.load("demo-causal").read("I put my money in the bank.").flow("money")
    later = slice(found.query + 1, None)
    assert (found.rollout[:, later] == 0).all()
    assert found.flow is not None
    assert (found.flow[later] == 0).all()
    assert found.ablated is not None
    assert np.isnan(found.ablated.effects[later]).all()


@torch.no_grad()
def test_where_a_vocabulary_has_nothing_to_put_in_an_embedding_is_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instead, "replacement", lambda _: instead.Replacement(None, instead.NOTHING))
    reading = at.load("demo-causal").read("I put my money in the")
    found = reading.flow("the", layers="0-1")
    model = LlamaForCausalLM.from_pretrained(DEMO / "causal", attn_implementation="eager").eval()
    ids = torch.tensor([reading.tokens.ids])
    before = model(ids).logits[0, -1].log_softmax(-1)
    embedded = model.get_input_embeddings()(ids)
    expected = np.full(ids.shape[1], np.nan)
    for place in range(1, ids.shape[1] - 1):
        changed = embedded.clone()
        changed[0, place] = 0
        expected[place] = (
            before.max() - model(inputs_embeds=changed).logits[0, -1].log_softmax(-1)[before.argmax()]
        )
    assert found.ablated is not None
    assert (found.ablated.replacement, found.ablated.answer) == ("nothing", "bank")
    np.testing.assert_allclose(found.ablated.effects, expected, atol=1e-4)
    assert len(found.layers) == 2
    again = reading.predict(1).blanks[0].guesses[0]
    assert (again.text, again.probability) == ("bank", pytest.approx(found.ablated.probability, abs=1e-6))


def test_a_token_that_the_model_has_no_embedding_of_is_put_in_nowhere() -> None:
    model, tokenizer = (
        each.from_pretrained(DEMO / "encoder") for each in (hf.BertForMaskedLM, hf.AutoTokenizer)
    )
    tokenizer.add_special_tokens({"mask_token": "[LATER]"})
    found = at.wrap(model.eval(), tokenizer).read("The door opened and the dog slept.").flow("dog")
    assert tokenizer.mask_token_id >= model.config.vocab_size
    assert found.ablated is not None
    assert (found.ablated.replacement, found.ablated.replacement_id) == ("[UNK]", tokenizer.unk_token_id)


def test_weights_that_are_no_numbers_are_followed_nowhere() -> None:
    broken = copy.deepcopy(families.sharp("bert"))
    with torch.no_grad():
        broken.encoder.layer[1].attention.self.query.weight.fill_(torch.nan)
    reading = at.wrap(broken).read(ids=[1, 20, 31, 42, 53, 2])
    with pytest.raises(CertificateError, match="the weights of layer 2 are not numbers"):
        reading.flow(3)
    assert reading.flow(3, layers=0).rollout.shape == (1, 6)


def test_a_long_text_has_no_flow_and_says_so(masked: at.Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "MOST_FLOW", 5)
    found = masked.flow("[MASK]")
    assert found.flow is None
    assert "flow" not in found.methods
    assert "no flow: there are more than 5 tokens" in " ".join(found.text(width=200).split())


def test_what_has_no_way_back_to_the_input_is_refused(masked: at.Reading, translated: at.Reading) -> None:
    with pytest.raises(InputError, match="cross-attention leads to another text"):
        translated.flow("porte", kind="cross")
    with pytest.raises(InputError, match="choose the first layers, --layer 0-2"):
        masked.flow("[MASK]", layers="1-2")
    with pytest.raises(InputError, match="no token 'window'"):
        masked.flow("window")


def test_zeroed_values_that_come_back_wrong_fail_the_whole_answer(
    masked: at.Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_zeroing, "_zeroed", lambda values, keys: values)
    found = masked.flow("[MASK]")
    assert found.verdict == "failed"
    told = " ".join(found.text(width=100).split())
    assert told.startswith("✗ Do not use these numbers")
    assert "✗ FAILED: zeroed values: in 4 of 4 runs" in told


def test_where_values_cannot_be_zeroed_it_is_said(masked: at.Reading) -> None:
    found = masked.flow("[MASK]", route="returned")
    assert (found.zeroed, found.zeroing) == (None, None)
    assert "no value zeroing: weights that a model returns say nothing" in " ".join(found.text().split())


PATCH, ROWS, COLUMNS = media.PATCH, media.ROWS, media.COLUMNS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("media")
    media.picture_file(path)
    media.sound_file(path)
    for name in ("vit", "wav2vec2", "llava", "swin"):
        media.save(name, path / name)
    return path


@pytest.fixture(scope="module")
def seen(folder: Path) -> at.Reading:
    return at.load(str(folder / "vit")).read(image=folder / "square.png")


def states_behind(model: torch.nn.Module) -> list[torch.Tensor]:
    """What the last layer hands on, of every run from now on."""
    behind = list[torch.Tensor]()
    layers = next(each for each in model.modules() if isinstance(each, torch.nn.ModuleList))
    layers[-1].register_forward_hook(
        lambda _m, _i, made: behind.append((made if isinstance(made, torch.Tensor) else made[0])[0].double())
    )
    return behind


def pixels_of(picture: torch.Tensor) -> dict[int, torch.Tensor]:
    """Where in the flat picture the pixels of each token stand."""
    numbers = torch.arange(picture.numel()).reshape(picture.shape)
    return {
        1 + r * COLUMNS + c: numbers[..., r * PATCH : (r + 1) * PATCH, c * PATCH : (c + 1) * PATCH].flatten()
        for r, c in np.ndindex(ROWS, COLUMNS)
    }


@torch.no_grad()
def test_a_patch_is_replaced_by_the_mean_of_all_and_the_querys_vector_turns(
    folder: Path, seen: at.Reading
) -> None:
    found = seen.flow("r1c3")
    model = hf.ViTModel.from_pretrained(folder / "vit", attn_implementation="eager").eval()
    processor = hf.ViTImageProcessorPil.from_pretrained(folder / "vit")
    picture = Image.open(folder / "square.png").convert("RGB")
    pixels = processor(images=picture, return_tensors="pt")["pixel_values"]
    own, behind = pixels_of(pixels), states_behind(model)
    model(pixels)
    mean = torch.stack([pixels.flatten()[each] for each in own.values()]).mean(0)
    query = 1 + COLUMNS + 3
    assert (found.query, found.tokens.names[found.query]) == (query, "r1c3")
    assert found.ablated is not None
    assert (found.ablated.replacement, found.ablated.answer) == ("the mean patch", "")
    assert found.ablated.together == 1
    for place in (1 + 2 * COLUMNS + 4, 1, 1 + 3 * COLUMNS + 5):
        changed = pixels.flatten().clone()
        changed[own[place]] = mean
        model(changed.reshape(pixels.shape))
        turned = 1 - torch.cosine_similarity(behind[0][query], behind[-1][query], dim=0)
        assert found.ablated.effects[place] == pytest.approx(float(turned), abs=1e-6), place
    effects = found.ablated.effects
    assert np.flatnonzero(np.isnan(effects)).tolist() == [0, query], "neither [CLS] nor the query"
    assert np.nanargmax(effects) == 1 + 2 * COLUMNS + 4, "the bright square"
    assert found.zeroed is not None
    assert "over square.png" in found.text(width=200)


def test_of_many_patches_squares_are_replaced_at_once(
    seen: at.Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = seen.flow("[CLS]")
    monkeypatch.setattr(replacing, "MOST", 6)
    found = seen.flow("[CLS]")
    assert found.ablated is not None
    assert (found.ablated.count, found.ablated.together) == (6, 4)
    assert found.ablated.groups[1] == (3, 4, 9, 10)
    effects = found.ablated.effects
    assert effects[3] == effects[4] == effects[9] == effects[10]
    assert alone.ablated is not None
    assert effects[3] != alone.ablated.effects[3]
    near = found.ablated.trust[-1]
    assert near.method == "distance alone"
    assert np.isnan(near.correlation), "no patch is nearer to a token that is none"
    told = sheet(found)
    assert told.answer.endswith("Only 6 groups of patches could be replaced.")
    (says,) = [column.says for column in told.main.table.columns if column.name == "effect"]
    assert "up to 4 patches" in says


def test_squares_cover_every_patch_once_whatever_the_shape() -> None:
    for rows, columns in ((14, 14), (24, 24), (3, 200), (8, 8)):
        patches = Patches(1, rows, columns)
        groups = replacing._squares(patches, set(patches.positions))
        assert len(groups) <= replacing.MOST
        assert sorted(place for each in groups for place in each) == list(patches.positions)


def test_near_in_a_picture_is_near_across_its_grid(seen: at.Reading) -> None:
    from attnscope.verbs.flow.answer import _near

    query = 1 + COLUMNS + 3
    near = _near(seen.flow("r1c3"), (query,))
    assert near[query + COLUMNS] == near[query + 1] == -1
    assert near[query + COLUMNS + 1] == pytest.approx(-(2**0.5))


@torch.no_grad()
def test_a_frame_is_replaced_by_silence_as_the_model_is_given_it(folder: Path) -> None:
    found = at.load(str(folder / "wav2vec2")).read(audio=folder / "tone.wav").flow("0.10s")
    model = hf.Wav2Vec2Model.from_pretrained(folder / "wav2vec2", attn_implementation="eager").eval()
    samples, rate = soundfile.read(folder / "tone.wav")
    given = hf.Wav2Vec2FeatureExtractor()(samples, sampling_rate=rate, return_tensors="pt")["input_values"]
    silent = (0 - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    behind = states_behind(model.encoder.layers)
    model(given)
    assert found.tokens.names[found.query] == "0.10s"
    assert found.ablated is not None
    assert found.ablated.replacement == "silence"
    for frame in (2, 7, 20):
        changed = given.clone()
        changed[0, frame * 320 : (frame + 1) * 320] = silent
        model(changed)
        turned = 1 - torch.cosine_similarity(behind[0][found.query], behind[-1][found.query], dim=0)
        assert found.ablated.effects[frame] == pytest.approx(float(turned), abs=1e-6), frame


def test_a_decoder_that_reads_a_picture_loses_its_answer_and_sees_no_later_patch(folder: Path) -> None:
    found = (
        at.load(str(folder / "llava"))
        .read("what is in the picture ?", image=folder / "square.png")
        .flow("r1c1")
    )
    assert found.ablated is not None
    assert found.ablated.answer
    assert 0 < found.ablated.probability < 1
    replaced = [found.tokens.names[i] for i in np.flatnonzero(~np.isnan(found.ablated.effects))]
    assert replaced == ["r0c0", "r0c1", "r0c2", "r0c3", "r1c0"]


def test_a_picture_that_is_read_in_windows_is_refused(folder: Path) -> None:
    reading = at.load(str(folder / "swin")).read(image=folder / "square.png")
    with pytest.raises(InputError, match="flow needs whole layers: layer 0 reads in windows"):
        reading.flow(0, heads=0)


def test_back_by_gradients_a_patch_has_the_sum_over_its_pixels(seen: at.Reading, folder: Path) -> None:
    """Blanking all patches at once turns the vector by what integrated gradients sum to."""
    found = seen.flow("r1c3")
    told = {each.method: each for each in found.attributed}
    query, pixels = found.query, seen._whole().inputs["pixel_values"]
    own, flat = pixels_of(pixels), pixels.flatten()
    mean = torch.stack([flat[each] for each in own.values()]).mean(0)
    blank = flat.clone()
    for place, each in own.items():
        if place != query:
            blank[each] = mean
    model = hf.ViTModel.from_pretrained(folder / "vit", attn_implementation="eager").eval()
    behind = states_behind(model)
    steps, total = 200, torch.zeros_like(flat)
    model(pixels)
    was = behind[-1][query].detach()
    for place in (torch.arange(steps) + 0.5) / steps:
        leaf = (blank + place * (flat - blank)).requires_grad_()
        model(leaf.reshape(pixels.shape))
        cosine = torch.cosine_similarity(behind[-1][query], was, dim=0)
        total += torch.autograd.grad(cosine, leaf)[0] / steps
    products = total * (flat - blank)
    values = told["integrated gradients"].values
    assert values is not None
    for place, each in own.items():
        if place != query:
            assert values[place] == pytest.approx(float(products[each].sum()), abs=2e-3)
    assert np.isnan(values[[0, query]]).all()
    assert np.nanmax(np.abs(values)) > 5e-3
    assert len(values) == len(found.tokens)


SENTENCE = "The dog saw the door when it opened."
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
    flow = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read(SENTENCE).flow(f"pooled:{how}")
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
    reading = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read("The dog saw it.")
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
    flow = at.wrap(plain, BertTokenizerFast.from_pretrained(ENCODER)).read(SENTENCE).flow("pooled:mean")
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
    return at.load(str(folder)).read(SENTENCE).flow(name)


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
    reading = at.load(str(folder)).read(SENTENCE)
    reading._model.module.base_model.pooler = None
    with pytest.raises(InputError, match="makes no one vector of a text: name how, --from pooled:mean"):
        reading.flow("pooled")
    with pytest.raises(InputError, match="has no pooler: --from pooled:mean, pooled:first, pooled:last"):
        reading.flow("pooled:pooler")
    with pytest.raises(InputError, match="no pooling 'max': pooled:mean, pooled:first"):
        reading.flow("pooled:max")
    with pytest.raises(InputError, match="stands behind all layers: leave --layer out"):
        reading.flow("pooled:mean", layers="0-1")


@pytest.mark.usefixtures("believing")
def test_what_replaced_groups_did_comes_back_from_a_file(
    seen: at.Reading, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(replacing, "MOST", 6)
    found = seen.flow("r0c0")
    for suffix in (".npz", ".json"):
        again = at.open(found.save(tmp_path / f"flow{suffix}"))
        assert again.ablated.groups == found.ablated.groups  # type: ignore[union-attr]
        assert again.text() == found.text()
