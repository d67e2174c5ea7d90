"""Heads found over pictures and sounds, by words, and in text that the model writes."""

from functools import cache
from pathlib import Path
from typing import Any

import media_models as media
import numpy as np
import pytest
import torch
import transformers as hf

import attnscope as at
from attnscope.analysis.claims.controls import control_pieces, control_texts
from attnscope.errors import InputError
from attnscope.results import Contents
from attnscope.session.questions.claims import exchanging

ENCODER = Path(at.__file__).parent / "demo" / "encoder"
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
        ("hubert", None, None, ("0.20s", "0.413s")),
        ("whisper", None, "encoder", ("0.20s", "0.40s")),
        ("whisper", None, "cross", ("is", "0.12s")),
        ("qwen2_vl", "what is in the picture ?", None, ("picture", "r1c2")),
        ("llava", "what is in the picture ?", None, ("picture", "r2c3")),
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


def test_a_key_that_the_model_wrote_changes_places_too() -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river", generate=5)
    found = reading.find(9, 7, controls=5, layers=1)
    assert "what the model wrote" not in found.controls.how
    assert "read at once, not written anew" in found.controls.how
    by_pattern = reading.find(pattern="induction", controls=5)
    assert all(by_pattern.evidence.depends_on(place) is not None for place in by_pattern.ranking[:6])


def test_a_model_that_reads_its_text_at_once_otherwise_is_told(monkeypatch: Any) -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river", generate=5)
    alone = exchanging.alone

    def other(reading: Any, chosen: Any, name: str, value: torch.Tensor) -> Any:
        return alone(reading, chosen, name, value.roll(1, dims=1))

    monkeypatch.setattr("attnscope.session.questions.claims.finding.alone", other)
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


def test_windows_of_a_picture_are_read_one_by_one(read: Any) -> None:
    found = read("swin").find("r0c0", "r1c1", layers=0, controls=2)
    assert found.controls.count == 2
    assert found.key_tokens.names[0] == "r0c0"
