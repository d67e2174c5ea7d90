"""Weights between sentences, passages and spans, beside plain sums of what models themselves return."""

import copy
from pathlib import Path
from typing import Any

import families
import numpy as np
import pytest
import torch
from transformers import BertForPreTraining

import attnscope as at
from attnscope.errors import InputError
from attnscope.render.kit.stage import only, panel
from attnscope.render.plot.heat import grid
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import written
from attnscope.results import HeadView
from attnscope.session.questions import rows as by_rows
from attnscope.vocabulary import Unit

DEMO = Path(at.__file__).parent / "demo"
TEXT = "The door was open. A boy went into the garden and sat there!\n\nWas [MASK] cold? The dog was asleep."
STARTS = ("The door", "A boy", "Was", "The dog")  # of its sentences; passages begin with 0 and 2
SENTENCES = ("The door was open.", "A boy went into the garden and sat there!", "Was [MASK] cold?")


def cut(tokenizer: Any, text: str, starts: list[int]) -> list[list[int]]:
    """The positions of the tokens of each stretch of a text, special ones by themselves, by offsets alone."""
    encoded = tokenizer(text, return_offsets_mapping=True)
    added = [start == end for start, end in encoded["offset_mapping"]]
    groups: list[tuple[int, list[int]]] = []
    for i, (start, end) in enumerate(encoded["offset_mapping"]):
        at_letter = start + len(text[start:end]) - len(text[start:end].lstrip())
        own = -i - 1 if added[i] else sum(each <= at_letter for each in starts)
        if groups and groups[-1][0] == own:
            groups[-1][1].append(i)
        else:
            groups.append((own, [i]))
    return [group for _, group in groups]


def summed(weights: np.ndarray, rows: list[list[int]], columns: list[list[int]]) -> np.ndarray:
    """By plain loops: the mean over the queries of each row of the sum over the keys of each column."""
    found = np.zeros((*weights.shape[:-2], len(rows), len(columns)))
    for i, queries in enumerate(rows):
        for j, keys in enumerate(columns):
            for query in queries:
                for key in keys:
                    found[..., i, j] += weights[..., query, key] / len(queries)
    return found


@torch.no_grad()
def returned(model: Any, ids: Any) -> np.ndarray:
    output = model(torch.tensor([list(ids)]), output_attentions=True)
    return np.stack([each[0].double().numpy() for each in output.attentions])


@pytest.fixture(scope="module")
def model() -> at.Model:
    return at.load("demo")


@pytest.fixture(scope="module")
def reading(model: at.Model) -> at.Reading:
    return model.read(TEXT)


@pytest.fixture(scope="module")
def own() -> Any:
    return BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def groups(reading: at.Reading, model: at.Model) -> dict[str, list[list[int]]]:
    starts = [TEXT.index(each) for each in STARTS]
    return {
        "sentence": cut(model.tokenizer, TEXT, starts),
        "passage": cut(model.tokenizer, TEXT, [starts[0], starts[2]]),
    }


@pytest.mark.parametrize("by", ["sentence", "passage"])
def test_a_head_by_units_is_the_sum_over_keys_and_the_mean_over_queries(reading, own, groups, by) -> None:
    weights = returned(own, reading.tokens.ids)
    view = reading.head(1, 3, by=by)
    assert isinstance(view, HeadView)
    assert view.query_groups == tuple(map(tuple, groups[by]))
    assert view.weights == pytest.approx(summed(weights[1, 3], groups[by], groups[by]), abs=2e-6)
    count = len(reading.tokens)
    even = summed(np.full((count, count), 1 / count), groups[by], groups[by])
    assert view.even == pytest.approx(even)
    assert view.verdict == "certified"
    assert list(view.query_tokens.positions) == list(range(len(groups[by])))


def test_all_heads_and_their_grid_are_by_units_too(reading, own, groups) -> None:
    weights = summed(returned(own, reading.tokens.ids), groups["sentence"], groups["sentence"])
    every = reading.overview(by="sentence")
    assert np.stack([np.stack(row) for row in every.weights]) == pytest.approx(weights, abs=2e-6)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(-1).mean(-1)
    assert every.main.values == pytest.approx(entropy, abs=1e-5)
    assert reading.grid(by="sentence").weights == pytest.approx(weights, abs=2e-6)
    link = reading.overview(query="garden", key="dog", by="sentence")
    assert link.main.values == pytest.approx(weights[:, :, 2, 4], abs=2e-6)
    share = len(groups["sentence"][4]) / len(reading.tokens)
    assert link.aimed.even_attention == pytest.approx(share)
    assert link.aim_spans == (tuple(groups["sentence"][2]), tuple(groups["sentence"][4]))
    assert "1.00 for all" not in written(link)
    assert f"the same: {share:.2f}".replace("0.", ".") in " ".join(written(link, width=200).split())


@pytest.mark.parametrize("long", [False, True])
def test_find_ranks_sentences_beside_controls_that_are_summed_alike(
    reading, own, groups, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    if long:
        monkeypatch.setattr(by_rows, "LONG", 4)
    found = reading.find("garden", "dog", by="sentence", controls=25, seed=3)
    assert found.by_rows == long
    asks, key = groups["sentence"][2], groups["sentence"][4]
    ids = np.array(reading.tokens.ids)
    weights = returned(own, ids)
    assert found.weights == pytest.approx(summed(weights, [asks], [key])[..., 0, 0], abs=2e-6)
    assert found.even_attention == pytest.approx(np.full(found.weights.shape, len(key) / len(ids)))
    assert found.controls.count == 25
    assert (found.controls.ids[:, asks] == ids[asks]).all(), "the sentence that asks stays"
    assert (found.controls.ids[:, key] != ids[key]).any(axis=1).all(), "the other one changes"
    controls = [summed(returned(own, each), [asks], [key])[..., 0, 0] for each in found.controls.ids]
    assert found.controls.mean == pytest.approx(np.mean(controls, axis=0), abs=2e-6)
    assert "the sentence that asks stay; the same positions are read, summed over" in sheet_of(found).control


def test_a_flow_by_sentences_sums_what_reaches_them_and_replaces_each_at_once(reading, own, groups) -> None:
    found = reading.flow("[MASK]", by="sentence")
    ids = torch.tensor([reading.tokens.ids])
    asks = groups["sentence"][3]
    place = reading.tokens.position("[MASK]")
    reached = torch.eye(ids.shape[1], dtype=torch.float64)
    with torch.no_grad():
        output = own(ids, output_attentions=True)
    for layer in output.attentions:
        mixed = layer[0].double().mean(0) + torch.eye(ids.shape[1])
        reached = mixed / mixed.sum(-1, keepdim=True) @ reached
    shares = [float(reached[asks][:, group].sum(dim=1).mean()) for group in groups["sentence"]]
    assert found.rollout[-1] == pytest.approx(shares, abs=2e-6)
    last = output.attentions[-1][0].double().mean(0)
    raw = [float(last[asks][:, group].sum(dim=1).mean()) for group in groups["sentence"]]
    assert found.raw[-1] == pytest.approx(raw, abs=2e-6)
    assert (found.by, found.query, found.answers_at, found.flow) == (Unit.SENTENCE, 3, place, None)
    before = output.prediction_logits[0, place].double().log_softmax(-1)
    answer = int(before.argmax())
    lost = {}
    for number in (1, 2, 4):
        changed = copy.copy(ids).clone()
        changed[0, groups["sentence"][number]] = reading.tokens.ids[place]
        with torch.no_grad():
            after = own(changed).prediction_logits[0, place].double().log_softmax(-1)
        lost[number] = float(before[answer] - after[answer])
    for number, effect in enumerate(found.ablated.effects):
        assert np.isnan(effect) if number not in lost else effect == pytest.approx(lost[number], abs=2e-5)
    assert "all tokens of a sentence are replaced at once" in " ".join(written(found, width=200).split())


def test_a_word_in_a_sentence_compares_the_sentences(model: at.Model) -> None:
    one, other = model.read("The dog slept. A boy sat."), model.read("The dog slept. A girl went away.")
    found = at.compare(one, other, "boy", "girl", by="sentence")
    assert found.by is Unit.SENTENCE
    assert (found.a.word, found.b.word) == ("A boy sat.", "A girl went away.")
    pieces = found.a.view.query_groups[found.a.row]
    assert len(pieces) > 3
    assert found.a.weights == pytest.approx(
        summed(found.a.head.weights, [list(pieces)], [list(each) for each in found.a.view.key_groups])[0]
    )


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"query": "was", "key": "dog"}, "'was' stands in 2 of them, 1 The door was open., 4 The dog"),
        ({"query": "castle", "key": "dog"}, "no token 'castle' in the input"),
        ({"query": "9", "key": "dog"}, "no token 9 in the input: positions 0-5"),
        ({"by": "paragraph", "query": "boy", "key": "dog"}, "--by is 'paragraph': token, word, sentence"),
        ({"words": True, "query": "boy", "key": "dog"}, "--words is --by word, and --by sentence was given"),
    ],
)
def test_what_names_no_one_sentence_is_refused_in_one_line(reading, how: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError) as told:
        reading.find(**{"by": "sentence", "controls": 2, **how})
    assert why in str(told.value)
    assert "\n" not in str(told.value)


def test_a_sentence_is_named_by_its_number_its_text_or_words_of_it(reading) -> None:
    by_name = [
        reading.overview(query=name, key=4, by="sentence").aim
        for name in (2, "2", "-4", "garden", "into the garden", SENTENCES[1])
    ]
    assert by_name == [(2, 4)] * 6


def test_across_two_texts_the_sentences_of_the_keys_are_listed_under_their_own_word() -> None:
    read = at.load("demo-translate").read("The cat sleeps. The dog sleeps.")
    shown = read.head(1, 1, kind="cross", by="sentence")
    lines = written(shown, width=60).splitlines()
    rows, keys = lines.index("key") - 4, lines.index("key")
    assert [line.rsplit(maxsplit=3)[0].rstrip() for line in lines[rows : keys - 1]] == [
        "0 [BOS]",
        "1 le chat dort.",
        "2 le chien dort.",
    ]
    assert lines[keys + 1 : keys + 4] == ["0 The cat sleeps.", "1 The dog sleeps.", "2 [EOS]"]
    laid = grid(panel(shown, "weights"))
    assert laid.columns == lines[keys + 1 : keys + 4], "and in a figure, upright above their columns"
    assert laid.rotated


@pytest.mark.parametrize(("by", "told"), [("sentence", True), ("word", False)])
def test_special_tokens_that_count_as_sentences_are_told(reading, by: str, told: bool) -> None:
    assert (f"each special token counts as a {by}" in sheet_of(reading.overview(by=by)).notes) is told


IDS = [1, 20, 31, 42, 53, 64, 75, 20, 31, 9, 2]
QUERIES, KEYS = [6, 7, 8], [2, 3]  # of different lengths


def between(rows: np.ndarray, queries: list[int], keys: list[int]) -> np.ndarray:
    """Mean over the queries of the sum over the keys, head by head."""
    return rows[..., queries, :][..., keys].sum(axis=-1).mean(axis=-1)


def weights_of(model: Any, ids: Any) -> np.ndarray:
    """The weights that an untouched copy returns, layer by layer."""
    own = families.eager_weights(model, {"input_ids": torch.tensor([ids])})
    return np.stack([each[0].double().numpy() for each in own])


@pytest.fixture(scope="module")
def asked() -> tuple[Any, at.Reading]:
    model = families.sharp("llama")
    return model, at.wrap(families.sharp("llama")).read(ids=IDS)


def test_find_sums_over_the_keys_and_averages_over_the_queries_in_the_text_and_its_controls(asked) -> None:
    model, reading = asked
    found = reading.find("6-8", "2-3", controls=7, seed=3)
    own = weights_of(model, IDS)
    assert found.weights == pytest.approx(between(own, QUERIES, KEYS), abs=2e-6)
    assert (found.question.query_span, found.question.key_span) == ((6, 7, 8), (2, 3))
    controls = np.stack([weights_of(model, ids.tolist()) for ids in found.controls.ids])
    assert found.controls.mean == pytest.approx(between(controls, QUERIES, KEYS).mean(axis=0), abs=2e-6)
    assert (found.controls.ids[:, QUERIES] == np.array(IDS)[QUERIES]).all(), "what asks stays"
    assert (found.controls.ids[:, KEYS] != np.array(IDS)[KEYS]).any(), "the keys change"
    allowed = (own[0, 0] > 0).astype(float)
    even = between(allowed / allowed.sum(axis=1, keepdims=True), QUERIES, KEYS)
    assert found.even_attention == pytest.approx(np.full(found.weights.shape, even), abs=1e-9)


def test_a_span_is_ranked_among_the_other_keys_as_one_of_them(asked) -> None:
    model, reading = asked
    rows = weights_of(model, IDS)[..., QUERIES, :].mean(axis=-2)
    others = [*(rows[..., i] for i in range(len(IDS)) if i not in QUERIES + KEYS), rows[..., QUERIES].sum(-1)]
    ranks = 1 + (np.stack(others) > rows[..., KEYS].sum(axis=-1)).sum(axis=0)
    assert (reading.find("6-8", "2-3", controls=2).ranks == ranks).all()


def test_what_followed_the_keys_of_a_span_is_summed_where_they_went(asked) -> None:
    model, reading = asked
    found = reading.find("9", "3-4", controls=6, seed=3)
    given = []
    for ids in found.controls.ids:
        row = weights_of(model, ids.tolist())[..., 9, :]
        given.append(row[..., np.isin(ids, [IDS[3], IDS[4]])].sum(axis=-1))  # each stands once
    assert found.followed == pytest.approx(np.mean(given, axis=0), abs=2e-6)


def test_several_heads_give_to_a_span_what_find_says(asked) -> None:
    model, reading = asked
    own = weights_of(model, IDS)
    several = reading.overview(query="6-8", key="2-3")
    assert several.main.values == pytest.approx(between(own, QUERIES, KEYS), abs=2e-6)
    assert several.aim_spans == ((6, 7, 8), (2, 3))
    allowed = (own[0, 0] > 0).astype(float)
    even = between(allowed / allowed.sum(axis=1, keepdims=True), QUERIES, KEYS)
    assert several.aimed is not None
    assert several.aimed.even_attention == pytest.approx(float(even), abs=1e-9)
    assert several.aimed.elsewhere is None, "no other key is a sum of two"


def test_words_are_taken_together_by_their_text_and_spans_that_share_tokens_are_refused() -> None:
    reading = at.load("demo").read("I was watching the door when [MASK] opened.")
    found = reading.find("[MASK]", "the door", controls=2)
    one = [reading.find("[MASK]", word, controls=2).weights for word in ("the", "door")]
    assert found.weights == pytest.approx(one[0] + one[1], abs=1e-9)
    with pytest.raises(InputError, match="'4-5 the door' and '5-6 door when' share 5 door"):
        reading.find("the door", "door when")
    with pytest.raises(InputError, match="no token 'the window' in the input"):
        reading.find("[MASK]", "the window")


def test_where_rows_have_the_sentences_of_the_keys_they_are_not_listed_twice(reading) -> None:
    shown = reading.head(1, 3, by="sentence")
    assert "key" not in written(shown, width=140).splitlines()
    assert grid(panel(shown, "weights")).columns == ["0", "1", "2", "3", "4", "5"]
    one = only(panel(shown, "weights"), 2)
    assert one.columns_apart, "a row alone does not say what the other sentences are"
