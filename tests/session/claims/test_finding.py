"""Heads found on the bundled models: those that their cards name, and what their controls say of them."""

import json
from pathlib import Path

import families
import numpy as np
import pytest
import torch
from transformers import BertModel

import attnscope as at
from attnscope.analysis.claims.controls import control_texts
from attnscope.errors import InputError
from attnscope.results import Finding
from attnscope.results.claims.ranking import DependsOn, Group
from attnscope.session.questions.claims import exchanging as asked

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


def test_the_reference_head_is_found_by_the_text_and_one_that_looks_back_by_its_place(
    masked: at.Reading,
) -> None:
    found = masked.find("[MASK]", "door", controls=2 * FEW)
    assert found.evidence.group((3, 11)) is Group.ABOVE_ITS_OWN
    assert found.evidence.group((0, 11)) is Group.POSITION
    assert names(found).index("L3 H11") < names(found).index("L0 H11")
    assert found.evidence.depends_on((3, 11)) is DependsOn.CONTEXT
    assert found.evidence.depends_on((0, 11)) is DependsOn.POSITION
    assert found.above_control[3, 11] > 0.6
    assert found.above_control[0, 11] < 0.1
    assert found.verdict == "certified"
    assert found.norms is not None
    assert (found.controls.count, found.rows, found.weights.size) == (2 * FEW, 1, 48)


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


@pytest.mark.parametrize(
    ("name", "text", "query", "key", "how"),
    [
        ("demo-causal", "river piano doctor river piano doctor", "6", "2", {}),  # grouped queries
        ("demo-translate", "I saw the red door.", "porte", "door", {"kind": "cross"}),
    ],
)
def test_named_heads_have_the_numbers_that_they_have_among_all(
    name: str, text: str, query: str, key: str, how: dict
) -> None:
    reading = at.load(name).read(text, **({"target": "j'ai vu la porte rouge."} if how else {}))
    found = reading.find(query, key, controls=5, heads="L3H11,L1H4", **how)
    whole = reading.find(query, key, controls=5, **how)
    for layer, head in ((3, 11), (1, 4)):
        place = found.layers.index(layer), found.heads.index(head)
        assert found.weights[place] == pytest.approx(whole.weights[layer, head], abs=1e-6)
        assert found.controls.mean[place] == pytest.approx(whole.controls.mean[layer, head], abs=1e-6)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_controls_one_by_one_are_those_of_a_batch(
    translated: at.Reading, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "encoder":
        reading = at.load("demo-translate").read("I was watching the red door when it opened.")
        query, key = "it", "door"
    else:
        reading, query, key = translated, "rouge", "door" if kind == "cross" else "porte"
    together = reading.find(query, key, kind=kind, layers=[1, 3], controls=4)
    monkeypatch.setattr(asked, "record_rows", lambda *_: None)
    alone = reading.find(query, key, kind=kind, layers=[1, 3], controls=4)
    assert alone.controls.mean == pytest.approx(together.controls.mean, abs=1e-6)
    np.testing.assert_allclose(alone.followed, together.followed, atol=1e-6)
    assert np.ptp(together.controls.mean) > 0.01


def test_a_translating_head_follows_the_word_in_cross_attention(translated: at.Reading) -> None:
    found = translated.find("la", "door", kind="cross", controls=FEW)
    assert found.weights[3, 11] > 0.95
    assert found.evidence.depends_on((3, 11)) is DependsOn.WORD
    assert found.followed is not None
    assert found.followed[3, 11] > 0.9
    assert found.stayed is not None
    assert found.stayed[3, 11] < 0.05
    assert "what the decoder reads" in found.controls.how


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


def test_the_previous_token_head_keeps_its_weight_whatever_the_words() -> None:
    reading = at.load("demo-causal").read("river piano doctor window apple river piano doctor")
    found = reading.find(pattern="previous", controls=FEW)
    assert names(found)[0] == "L0 H0"
    assert found.evidence.depends_on((0, 0)) is DependsOn.POSITION
    assert abs(found.above_control[0, 0]) < 0.02


def test_a_repeated_token_is_asked_for_by_its_place(masked: at.Reading) -> None:
    reading = at.load("demo").read("I saw the dog and the cat.")
    with pytest.raises(InputError, match="stands 2 times: choose one of the@3, the@6"):
        reading.find("the", "cat")
    assert reading.find("the@6", "cat", controls=2, layers=0).question.query == 6


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


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "gpt_oss", "modernbert", "albert"])
def test_any_family_is_ranked_in_batches_as_one_by_one(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = at.wrap(families.sharp(family)).read(ids=[1, 20, 31, 42, 53, 64, 75, 20, 31, 9, 2])
    together = reading.find(6, 4, controls=4)
    alone = list[object]()
    monkeypatch.setattr(asked, "record_rows", lambda *_: alone.append(1))  # and gives nothing
    one = reading.find(6, 4, controls=4)
    assert alone
    assert one.controls.mean == pytest.approx(together.controls.mean, abs=1e-5)
    assert np.ptp(together.controls.mean) > 0.05
    assert together.norms is not None
    assert together.verdict == "certified"


def test_every_control_text_can_be_looked_at_afterwards(masked: at.Reading, tmp_path: Path) -> None:
    found = masked.find("[MASK]", "opened", controls=6, seed=2)
    again = at.open(found.save(tmp_path / "found.npz"))
    assert isinstance(again, Finding)
    own = list(found.key_tokens.ids)
    assert again.controls.input == "input_ids"
    assert again.controls.ids.shape == (6, len(own))
    for ids, text in zip(again.controls.ids.tolist(), again.control_texts, strict=True):
        assert sorted(ids) == sorted(own)
        assert ids != own
        names = [found.key_tokens.names[own.index(id)] for id in ids]
        assert text == " ".join(names)
    told = json.loads(found.save(tmp_path / "found.json").read_text("utf-8"))
    assert told["control_texts"] == list(again.control_texts)
    assert again.links.tolist() == [[found.question.query, found.question.key]]
    pattern = masked.find(pattern="previous", controls=2)
    assert pattern.links.tolist() == [[i, i - 1] for i in range(1, len(own))]
