"""Weights between sentences and passages, beside plain sums and means of what models themselves return."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, BertForPreTraining

import attnscope as at
from attnscope.errors import InputError
from attnscope.render.kit.stage import only, panel
from attnscope.render.plot.layout import grid
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import written
from attnscope.results import HeadView
from attnscope.session.questions.claims import rows as by_rows
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


def test_groups_are_as_many_as_there_are_sentences_passages_and_special_tokens(groups) -> None:
    assert [len(groups[name]) for name in ("sentence", "passage")] == [6, 4]
    assert max(map(len, groups["sentence"])) > 8


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


def test_without_special_tokens_a_mask_stays_in_its_sentence_and_numbers_stay(reading, own, groups) -> None:
    view = reading.head(2, 1, by="sentence", special="renormalise")
    inner = groups["sentence"][1:-1]
    assert view.query_groups == tuple(map(tuple, inner))
    assert list(view.query_tokens.positions) == [1, 2, 3, 4]
    expected = summed(returned(own, reading.tokens.ids)[2, 1], inner, inner)
    expected /= expected.sum(axis=1, keepdims=True)
    assert view.weights == pytest.approx(expected, abs=4e-6)
    assert view.even.sum(axis=1) == pytest.approx(np.ones(4))


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


@pytest.mark.parametrize("folder", ["causal", "reader"])
def test_in_a_decoder_a_row_is_the_mean_over_its_tokens_and_later_sentences_are_masked(folder: str) -> None:
    model = at.load(f"demo-{folder}")
    text = "The door was open. A boy was in the garden and a dog slept."
    reading = model.read(text)
    starts = [0, text.index("A boy")]
    rows = cut(model.tokenizer, text, starts)
    how = {"attn_implementation": "eager", "dtype": torch.float32}
    own = AutoModelForCausalLM.from_pretrained(DEMO / folder, **how).eval()
    view = reading.head(0, 1, by="sentence")
    assert [list(each) for each in view.query_groups] == rows
    assert view.weights == pytest.approx(
        summed(returned(own, reading.tokens.ids)[0, 1], rows, rows), abs=2e-6
    )
    assert not view.allowed[-2, -1]


def test_what_a_model_wrote_is_cut_into_sentences_though_its_tokens_have_no_place() -> None:
    text = "The door was open. A dog slept in the garden."
    read = at.load("demo-translate").read(text)
    view = read.head(1, 2, kind="cross", by="sentence")
    rows, columns = view.query_groups, view.key_groups
    assert [len(view.query_tokens), len(view.key_tokens)] == [3, 2 + len(columns) - 2]
    assert view.query_tokens.in_full[1].endswith(".")
    expected = summed(view.head.weights, [list(each) for each in rows], [list(each) for each in columns])
    assert view.weights == pytest.approx(expected)
    assert sum(map(len, rows)) == len(view.head.query_tokens)


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


def test_by_words_a_flow_is_that_of_its_words(reading) -> None:
    by_words, by_tokens = reading.flow("[MASK]", by="word"), reading.flow("[MASK]")
    assert by_words.rollout[-1].sum() == pytest.approx(1)
    assert len(by_words.tokens) <= len(by_tokens.tokens)
    assert by_words.flow is None
    assert by_tokens.by is Unit.TOKEN


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


@pytest.mark.parametrize("width", [60, 140])
def test_the_numbered_text_stands_in_the_margin_and_columns_are_numbers(reading, width: int) -> None:
    shown = written(reading.head(1, 3, by="sentence"), width=width)
    assert "\n2 A boy went into the garden" in shown
    head = next(line for line in shown.splitlines() if line.startswith("query ↓"))
    assert head.split() == ["query", "↓", "0", "1", "2", "3", "4", "5"]
    assert max(map(len, shown.splitlines())) <= width
    assert "sentences: sum over the tokens of a key, mean over those of a query" in " ".join(
        " ".join(sheet_of(reading.head(1, 3, by="sentence")).details).split()
    )


@pytest.mark.parametrize("width", [60, 140])
def test_across_two_texts_the_sentences_of_the_keys_are_listed_under_their_own_word(width: int) -> None:
    read = at.load("demo-translate").read("The cat sleeps. The dog sleeps.")
    shown = read.head(1, 1, kind="cross", by="sentence")
    lines = written(shown, width=width).splitlines()
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


def test_where_rows_have_the_sentences_of_the_keys_they_are_not_listed_twice(reading) -> None:
    shown = reading.head(1, 3, by="sentence")
    assert "key" not in written(shown, width=140).splitlines()
    assert grid(panel(shown, "weights")).columns == ["0", "1", "2", "3", "4", "5"]
    one = only(panel(shown, "weights"), 2)
    assert one.columns_apart, "a row alone does not say what the other sentences are"


@pytest.mark.parametrize(("by", "told"), [("sentence", True), ("passage", True), ("word", False)])
def test_special_tokens_that_count_as_sentences_are_told(by: str, told: bool) -> None:
    found = at.load("demo", device="cpu").read(TEXT).overview(by=by)
    assert (f"each special token counts as a {by}" in sheet_of(found).notes) is told
