"""Heads found in texts, pictures and sounds, beside what the model itself returns for every control."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import media_models as media
import numpy as np
import pytest
import torch
import transformers as hf
from transformers import BertModel

import attnscope as at
from attnscope.analysis.controls import control_pieces, control_texts
from attnscope.errors import InputError
from attnscope.results import Contents, Finding
from attnscope.results.claims.ranking import DependsOn, Group
from attnscope.session.questions import exchanging
from attnscope.session.questions import exchanging as asked

TEXT = "I was watching the door when [MASK] opened."
FEW = 30  # controls
ENCODER = Path(at.__file__).parent / "demo" / "encoder"


@pytest.fixture(scope="module")
def masked() -> at.Reading:
    return at.load("demo").read(TEXT)


@pytest.fixture(scope="module")
def translated() -> at.Reading:
    text, target = "I was watching the red door when it opened.", "je regardais la porte rouge quand elle"
    return at.load("demo-translate").read(text, target=target)


def names(found: Finding) -> list[str]:
    return [f"L{found.layers[i]} H{found.heads[j]}" for i, j in found.ranking]


def test_control_numbers_are_those_that_the_model_itself_returns_for_the_control_texts(
    masked: at.Reading,
) -> None:
    found = masked.find("[MASK]", "door", controls=9, seed=4)
    texts = control_texts(masked.tokens, mask_id=4, count=9, seed=4, kept=[7], moved=[5])
    away = np.array([ids[5] != masked.tokens.ids[5] for ids in texts.ids])
    assert 0 < away.sum() < 9
    model = BertModel.from_pretrained(ENCODER, attn_implementation="eager").eval()
    with torch.no_grad():
        rows = [
            torch.stack(model(torch.tensor(ids[None]), output_attentions=True).attentions)[:, 0, :, 7]
            for ids in texts.ids
        ]
    values = torch.stack(rows).double().numpy()
    assert found.controls.mean == pytest.approx(values[..., 5].mean(axis=0), abs=2e-6)
    assert found.controls.best == pytest.approx(values[..., 5].max(axis=(1, 2)), abs=2e-6)
    went = [int(np.flatnonzero(sources == 5)[0]) for sources in texts.sources]
    given = np.array([value[..., key] for value, key in zip(values, went, strict=True)])
    assert found.followed == pytest.approx(given[away].mean(axis=0), abs=2e-6)
    assert found.stayed == pytest.approx(values[away, ..., 5].mean(axis=0), abs=2e-6)
    assert (texts.ids[:, 7] == 4).all()


def test_how_long_the_key_s_hidden_state_is_and_what_others_give_it_is_what_the_model_returns(
    masked: at.Reading,
) -> None:
    found = masked.find("[MASK]", "door", controls=2, layers=[1, 3])
    model = BertModel.from_pretrained(ENCODER, attn_implementation="eager").eval()
    with torch.no_grad():
        told = model(torch.tensor([masked.tokens.ids]), output_hidden_states=True, output_attentions=True)
    lengths = [told.hidden_states[layer][0].norm(dim=-1).numpy() for layer in (1, 3)]
    assert found.key_lengths == pytest.approx([each[5] / np.median(each) for each in lengths], rel=1e-5)
    others = [query for query in range(len(masked.tokens)) if query not in (5, 7)]
    given = [told.attentions[layer][0][:, others, 5].double().mean(dim=1).numpy() for layer in (1, 3)]
    assert found.elsewhere == pytest.approx(np.array(given), abs=2e-6)


def test_heads_that_are_named_one_by_one_are_held_against_one_another_alone(masked: at.Reading) -> None:
    """L2 H11 and L3 H10, between them in the grid, are neither ranked nor a control's best head."""
    named = [(2, 10), (3, 11), (1, 3)]
    found = masked.find("[MASK]", "door", controls=FEW, seed=2, heads="L2H10,L3H11,L1H3")
    model = BertModel.from_pretrained(ENCODER, attn_implementation="eager").eval()
    with torch.no_grad():
        rows = [
            torch.stack(model(torch.tensor(ids[None]), output_attentions=True).attentions)[:, 0, :, 7, 5]
            for ids in (np.array(masked.tokens.ids), *found.controls.ids)
        ]
    own, *others = (np.array([row.double().numpy()[place] for place in named]) for row in rows)
    places = [(found.layers.index(layer), found.heads.index(head)) for layer, head in named]
    assert sorted(found.ranking) == sorted(places) == sorted(found.places)
    assert [found.weights[place] for place in places] == pytest.approx(own, abs=2e-6)
    assert np.isnan(found.weights).sum() == 9 - 3
    assert found.controls.best == pytest.approx(np.array(others).max(axis=1), abs=2e-6)
    whole = masked.find("[MASK]", "door", controls=FEW, seed=2)
    assert (whole.controls.best >= found.controls.best - 1e-9).all()
    assert (whole.controls.best > found.controls.best + 1e-3).any()
    assert len(found.every_verdict) == 3
    assert "3 of 3 heads recomputed" in " ".join(found.text(width=200).split())


def test_named_heads_of_cross_attention_have_the_numbers_that_they_have_among_all(
    translated: at.Reading,
) -> None:
    found = translated.find("porte", "door", kind="cross", controls=5, heads="L3H11,L1H4")
    whole = translated.find("porte", "door", kind="cross", controls=5)
    for layer, head in ((3, 11), (1, 4)):
        place = found.layers.index(layer), found.heads.index(head)
        assert found.weights[place] == pytest.approx(whole.weights[layer, head], abs=1e-6)
        assert found.controls.mean[place] == pytest.approx(whole.controls.mean[layer, head], abs=1e-6)


@pytest.mark.parametrize(("kind", "key"), [("decoder", "porte"), ("cross", "door")])
def test_controls_one_by_one_are_those_of_a_batch(
    translated: at.Reading, kind: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = translated.find("rouge", key, kind=kind, layers=[1, 3], controls=4)
    monkeypatch.setattr(asked, "record_rows", lambda *_: None)
    alone = translated.find("rouge", key, kind=kind, layers=[1, 3], controls=4)
    assert alone.controls.mean == pytest.approx(together.controls.mean, abs=1e-6)
    np.testing.assert_allclose(alone.followed, together.followed, atol=1e-6)
    assert np.ptp(together.controls.mean) > 0.01


def test_induction_heads_are_those_of_the_card() -> None:
    card = json.loads((ENCODER.parent / "causal" / "figures.json").read_text())
    scores = np.array(card["heads"]["by_head"])
    words = "river piano doctor window apple"
    reading = at.load("demo-causal").read(f"{words} {words}")
    found = reading.find(pattern="induction", controls=FEW)
    first = {tuple(place) for place in found.ranking[:12]}
    assert first == {tuple(place) for place in np.argwhere(scores > 0.5).tolist()}
    assert all(found.evidence.depends_on(place) is DependsOn.CONTEXT for place in first)
    assert set(found.evidence.of_group(Group.STANDS_OUT)) == first
    near = reading.find(like="L1H10", controls=3)
    assert {layer for layer, _ in near.ranking[:11]} == {1}
    assert np.isnan(near.weights[1, 10])


def test_a_head_of_positions_keeps_its_weight_and_a_translating_one_follows_the_word(
    translated: at.Reading,
) -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river piano doctor")
    found = reading.find(pattern="previous", controls=FEW)
    assert names(found)[0] == "L0 H0"
    assert found.evidence.depends_on((0, 0)) is DependsOn.POSITION
    assert abs(found.above_control[0, 0]) < 0.02
    found = translated.find("la", "door", kind="cross", controls=FEW)
    assert found.weights[3, 11] > 0.95
    assert found.evidence.depends_on((3, 11)) is DependsOn.WORD
    assert found.followed is not None
    assert found.stayed is not None
    assert found.followed[3, 11] > 0.9 > 0.05 > found.stayed[3, 11]


def test_returned_weights_are_ranked_without_norms_and_uncertified(masked: at.Reading) -> None:
    found = masked.find("[MASK]", "door", route="returned", controls=2)
    assert found.norms is None
    assert found.verdict == "uncertified"
    assert names(found)[0] == "L3 H11"
    assert found.evidence.of_group(Group.NEITHER)[0] == (3, 11), "two controls are too few for more"
    assert found.evidence.group((0, 11)) is Group.POSITION


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({}, "say what to find"),
        ({"query": "door"}, "go together"),
        ({"query": "door", "key": "opened", "pattern": "next"}, "one of these"),
        ({"pattern": "nowhere"}, "no pattern 'nowhere': previous"),
        ({"like": "head"}, "write it as L3H11"),
        ({"like": "L9H0"}, "layers looked at are 0-3"),
        ({"like": "L0H12"}, "has heads 0-11"),
        ({"pattern": "next", "controls": 0}, "--controls 0"),
        ({"query": "door", "key": "window"}, "no token 'window'"),
        ({"pattern": "same"}, "no query of this text has a key of pattern same"),
    ],
)
def test_what_cannot_be_found_is_refused_in_one_line(
    masked: at.Reading, wish: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        masked.find(**wish)


def test_what_is_masked_and_what_has_no_places_is_refused(translated: at.Reading) -> None:
    causal = at.load("demo-causal").read("The key opened the safe.")
    with pytest.raises(InputError, match="may not look at"):
        causal.find("key", "safe")
    with pytest.raises(InputError, match="not the same tokens; there are first, punctuation, special"):
        translated.find(pattern="previous", kind="cross")
    with pytest.raises(InputError, match="too few words"):
        at.load("demo").read("door").find("[CLS]", "door")


CAUSAL = ENCODER.parent / "causal"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen")


@pytest.fixture(scope="module")
def read(folder: Path) -> Any:
    """`read(name, text)`: the picture or the sound as a tiny model of that name reads it."""
    files = {"image": media.picture_file(folder), "audio": media.sound_file(folder, 0.7)}

    @cache
    def one(name: str, text: str | None = None, target: str | None = None) -> at.Reading:
        kind = "audio" if name in ("hubert", "whisper") else "image"
        return at.load(str(media.save(name, folder / name))).read(text, target=target, **{kind: files[kind]})

    return one


def patches_moved(pixels: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Patches of a picture at other places, pixel by pixel."""
    moved, side = pixels.copy(), media.PATCH
    for place, source in enumerate(sources):
        (i, j), (a, b) = divmod(place, media.COLUMNS), divmod(int(source), media.COLUMNS)
        for y in range(side):
            for x in range(side):
                moved[:, i * side + y, j * side + x] = pixels[:, a * side + y, b * side + x]
    return moved


def test_control_pictures_are_those_that_the_model_itself_is_given(read: Any, folder: Path) -> None:
    reading = read("vit")
    found = reading.find("r0c1", "r2c4", controls=6, seed=2)
    model = hf.ViTModel.from_pretrained(folder / "vit", attn_implementation="eager").eval()
    pixels = reading._encoded.encoded.inputs["pixel_values"][0].numpy()
    query, key = 1, 2 * media.COLUMNS + 4
    contents = np.arange(media.ROWS * media.COLUMNS)  # in this picture no two patches are alike
    orders = control_pieces(contents, Contents.PICTURE, count=6, seed=2, kept=[query]).sources
    rows = []
    for order in (contents, *orders):
        given = torch.from_numpy(patches_moved(pixels, order))[None]
        with torch.no_grad():
            attentions = torch.stack(model(given, output_attentions=True).attentions)
        rows.append(attentions[:, 0, :, 1 + query].double().numpy())
    assert found.weights == pytest.approx(rows[0][..., 1 + key], abs=1e-6)
    assert found.controls.mean == pytest.approx(np.mean(rows[1:], axis=0)[..., 1 + key], abs=1e-6)
    went = [1 + order.tolist().index(key) for order in orders]
    given = zip(rows[1:], went, strict=True)
    followed = np.mean([row[..., place] for row, place in given if place != 1 + key], axis=0)
    assert found.followed == pytest.approx(followed, abs=1e-6)
    assert np.abs(found.followed - found.controls.mean).max() > 0.1  # the two are not one
    assert (orders[:, query] == query).all()
    assert found.controls.of is Contents.PICTURE
    assert found.verdict == "certified"


def test_the_patch_to_the_left_is_one_of_the_same_row(read: Any) -> None:
    reading = read("deit")  # two learned tokens before the patches
    found = reading.find(pattern="previous", controls=2)
    for layer, head in ((0, 0), (1, 2)):
        weights = reading.head(layer, head).weights
        each = [
            weights[2 + row * media.COLUMNS + column, 1 + row * media.COLUMNS + column]
            for row in range(media.ROWS)
            for column in range(1, media.COLUMNS)
        ]
        assert found.weights[layer, head] == pytest.approx(np.mean(each))
    assert found.rows == media.ROWS * (media.COLUMNS - 1)
    down = reading.find(pattern="special", controls=2)
    assert down.weights[1, 2] == pytest.approx(reading.head(1, 2).weights[:, :2].sum(axis=1).mean())


@pytest.mark.parametrize(
    ("name", "text", "kind", "pair"),
    [
        ("whisper", None, "cross", ("is", "0.12s")),
        ("qwen2_vl", "what is in the picture ?", None, ("picture", "r1c2")),
        ("llava", "what is in the picture ?", None, ("picture", "what")),
    ],
)
def test_controls_in_batches_are_those_one_by_one(
    name: str, text: str | None, kind: str | None, pair: tuple[str, str], read: Any, monkeypatch: Any
) -> None:
    reading = read(name, text, "what is in" if kind == "cross" else None)
    together = reading.find(*pair, kind=kind, controls=4)
    ran = list[object]()
    monkeypatch.setattr(exchanging, "record_rows", lambda *_: ran.append(1))  # and gives nothing
    alone = reading.find(*pair, kind=kind, controls=4)
    assert bool(ran) is (name != "qwen2_vl")  # whose pixels come packed
    assert alone.controls.mean == pytest.approx(together.controls.mean, abs=1e-5)
    np.testing.assert_allclose(alone.followed, together.followed, atol=1e-5)
    assert together.controls.count == 4
    assert np.ptp(together.controls.mean) > 1e-3
    moved = {"what": "beginnings", "0": "frames of the sound", "r": "patches of the picture"}
    assert together.controls.how.startswith(next(v for k, v in moved.items() if pair[1].startswith(k)))


def test_a_picture_has_a_map_and_is_compared_between_layers(read: Any) -> None:
    reading = read("vit")
    assert reading.tsne(1, 2, max_iter=300).head.verdict == "certified"
    found = at.compare(reading, reading, "r1c2", layer=0, layer_b=1)
    assert str(found.between) == "layers"
    assert found.a.word == "r1c2"


def test_a_batch_in_which_the_untouched_text_is_another_is_not_believed(monkeypatch: Any) -> None:
    reading = at.load("demo").read("I was watching the door when [MASK] opened.")
    right = reading.find("[MASK]", "door", controls=4, layers=3)
    record = exchanging.record_rows

    def shifted(model: Any, inputs: Any, *others: Any) -> Any:
        """As of a model that reads a text otherwise where it stands among others."""
        return record(model, {**inputs, "input_ids": inputs["input_ids"].roll(1, dims=1)}, *others)

    monkeypatch.setattr(exchanging, "record_rows", shifted)
    assert reading.find("[MASK]", "door", controls=4, layers=3).controls.mean == pytest.approx(
        right.controls.mean, abs=1e-6
    )


WORDS = "the zebra saw the gulping doors when [MASK] opened."


def test_words_are_ranked_as_heads_shows_them_and_their_controls_are_the_model_s_own() -> None:
    reading = at.load("demo").read(WORDS)
    found = reading.find("zebra", "gulping", words=True, controls=5, seed=1)
    one = reading.head(2, 4, words=True)
    query, key = one.query_tokens.position("zebra"), one.key_tokens.position("gulping")
    assert found.weights[2, 4] == pytest.approx(one.weights[query, key])
    order = sorted(one.weights[query], reverse=True)
    assert found.ranks[2, 4] == 1 + order.index(one.weights[query, key])
    asks, sought = one.query_groups[query], one.key_groups[key]
    assert (len(asks), len(sought)) == (5, 7)
    texts = control_texts(reading.tokens, mask_id=4, count=5, seed=1, kept=asks, moved=sought)
    model = hf.BertModel.from_pretrained(ENCODER, attn_implementation="eager").eval()
    means, followed = [], []
    for ids, sources in zip(texts.ids, texts.sources, strict=True):
        with torch.no_grad():
            attention = torch.stack(model(torch.tensor(ids[None]), output_attentions=True).attentions)[:, 0]
        row = attention[:, :, list(asks)].double().mean(dim=2).numpy()
        means.append(sum(row[..., piece] for piece in sought))
        followed.append(sum(row[..., sources.tolist().index(piece)] for piece in sought))
    assert found.controls.mean == pytest.approx(np.mean(means, axis=0), abs=2e-6)
    assert found.followed == pytest.approx(np.mean(followed, axis=0), abs=2e-6)
    own = np.array(reading.tokens.ids)[list(sought)]
    assert (texts.ids[:, list(sought)] != own).any(axis=1).all(), "a word of seven pieces seldom stays"


def test_the_norm_of_a_word_is_that_of_what_its_pieces_move_together() -> None:
    reading = at.load("demo").read(WORDS)
    found = reading.find("zebra", "gulping", words=True, controls=1, layers=2, heads=4)
    tokens, view = reading.head(2, 4), reading.head(2, 4, words=True)
    model = hf.BertModel.from_pretrained(ENCODER)
    matrix = model.encoder.layer[2].attention.output.dense.weight.detach().double().numpy()
    dim = tokens.v.shape[1]
    arrives = tokens.v @ matrix[:, 4 * dim : 5 * dim].T
    asks = view.query_groups[view.query_tokens.position("zebra")]
    row = tokens.weights[list(asks)].mean(axis=0)
    lengths = [np.linalg.norm(sum(row[p] * arrives[p] for p in group)) for group in view.key_groups]
    key = view.key_tokens.position("gulping")
    assert found.norms[0, 0] == pytest.approx(lengths[key], rel=1e-5)
    assert found.shares[0, 0] == pytest.approx(lengths[key] / sum(lengths), rel=1e-5)
    added_up = sum(row[p] * np.linalg.norm(arrives[p]) for p in view.key_groups[key])
    assert added_up > 1.02 * lengths[key]  # which is another number


@pytest.mark.parametrize("special", ["hide", "renormalise"])
def test_without_special_tokens_a_row_is_as_heads_has_it(special: str) -> None:
    reading = at.load("demo").read("I was watching the door when [MASK] opened.")
    found = reading.find("[MASK]", "door", special=special, controls=2)
    one = reading.head(1, 3, special=special)
    query, key = one.query_tokens.position("[MASK]"), one.key_tokens.position("door")
    assert found.weights[1, 3] == pytest.approx(one.weights[query, key])
    even = 1 / 11 if special == "hide" else 1 / 9  # of 11 tokens two are special
    assert found.even_attention == pytest.approx(np.full((4, 12), even))
    plain = reading.find("[MASK]", "door", controls=2)
    assert found.norms == pytest.approx(plain.norms)
    assert (found.shares > plain.shares + 1e-6).any() == (special == "renormalise")
    with pytest.raises(InputError, match=r"'\[CLS\]' is left out by --special"):
        reading.find("[MASK]", "[CLS]", special=special)
    with pytest.raises(InputError, match="none can be looked at"):
        reading.find(pattern="special", special=special)


def test_what_the_model_wrote_is_held_while_words_of_its_prompt_change_places() -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river", generate=5)
    found = reading.find(8, 2, controls=5, seed=3)
    tokens = found.key_tokens
    wrote = [i for i, token in enumerate(tokens.items) if token.part == 1]
    assert wrote == list(range(7, 11))
    texts = control_texts(tokens, count=5, seed=3, kept=[8, *wrote], moved=[2])
    model = hf.AutoModelForCausalLM.from_pretrained(CAUSAL, attn_implementation="eager").eval()
    rows = []
    for ids in (np.array(tokens.ids), *texts.ids):
        assert (ids[wrote] == np.array(tokens.ids)[wrote]).all()
        with torch.no_grad():
            attention = model(torch.tensor(ids[None]), output_attentions=True).attentions
        rows.append(torch.stack(attention)[:, 0, :, 8, 2].double().numpy())
    assert found.weights == pytest.approx(rows[0], abs=1e-5)
    assert found.controls.mean == pytest.approx(np.mean(rows[1:], axis=0), abs=1e-5)
    assert "what the model wrote stay; read at once, not written anew" in found.controls.how
    assert not any("of writing" in note for note in found.notes)


def test_a_model_that_reads_its_text_at_once_otherwise_is_told(monkeypatch: Any) -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river", generate=5)
    alone = exchanging.alone

    def other(reading: Any, chosen: Any, name: str, value: torch.Tensor) -> Any:
        return alone(reading, chosen, name, value.roll(1, dims=1))

    monkeypatch.setattr("attnscope.verbs.find.answer.alone", other)
    found = reading.find(8, 2, controls=2)
    assert any("from those of writing" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "wish", "message"),
    [
        (
            "vit",
            {"pattern": "same"},
            "no words; there are previous, next, self, first, special",
        ),
        ("hubert", {"pattern": "induction"}, "patches and frames are no words"),
        ("vit", {"pattern": "next", "words": True}, "a picture or a sound has none"),
        ("vit", {"query": "r0c0", "key": "r9c9"}, "no token 'r9c9'"),
        ("swin", {"query": "r0c0", "key": "r0c1"}, "windows of its own: name one with --layer"),
        (
            "whisper",
            {"pattern": "previous", "kind": "cross"},
            "not the same tokens; there are first",
        ),
    ],
)
def test_what_means_nothing_here_is_refused(name: str, wish: dict[str, Any], message: str, read: Any) -> None:
    with pytest.raises(InputError, match=message):
        read(name, None, "what is in" if "kind" in wish else None).find(**wish)


def test_silence_behind_a_sound_stays_and_that_is_said(read: Any) -> None:
    found = read("whisper").find("0.20s", "0.90s", kind="encoder", controls=2)
    assert found.controls.how.endswith("; what is looked at is no frame of it and stays")
    heard = read("whisper").find("0.20s", "0.40s", kind="encoder", controls=2)
    assert "what is looked at" not in heard.controls.how
