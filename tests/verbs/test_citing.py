"""Where answers are from, on bundled models whose sources are known, beside plain sums and runs."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, LlamaConfig, LlamaForCausalLM

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Citation, Verdict
from attnscope.verbs.cite.result import (
    ATTENTION,
    BY_NORM,
    COPYING,
    Case,
    Method,
    candidates_of,
    sources_of,
    times,
)

DEMO = Path(at.__file__).parent / "demo"
FACTS = ("Velmir has a red cup.", "The key of Norris is blue.", "Velmir lost the key near the river.")
ASKED = "Question: what is the cup of Velmir? Answer:"
NOWHERE = "Question: what is the boat of Velmir? Answer:"


@pytest.fixture(scope="module")
def reader() -> at.Model:
    return at.load("demo-reader")


@pytest.fixture(scope="module")
def causal() -> at.Model:
    return at.load("demo-causal")


def values(result: Citation, method: str) -> np.ndarray:
    return result.methods[method]


@pytest.mark.parametrize("place", [0, 2])
def test_the_sentence_with_the_answer_is_named_wherever_it_stands(reader: at.Model, place: int) -> None:
    facts = [*FACTS[1:]]
    facts.insert(place, FACTS[0])
    found = reader.read(" ".join((*facts, ASKED))).cite(generate=1)
    assert found.answer == "red"
    assert found.how == "greedily"
    assert [each.text for each in found.passages] == facts
    assert found.kept == ASKED
    assert found.sources == ((place,),)
    assert found.lost[0, place] > 3
    assert found.verdict is Verdict.CERTIFIED


def test_an_answer_that_is_in_no_passage_comes_from_none_of_them(reader: at.Model) -> None:
    found = reader.read(" ".join((*FACTS, NOWHERE))).cite(generate=1)
    assert found.answer == "none"
    assert found.cases == (Case.NONE,)
    assert found.sources == ((),)
    assert found.statements[0].without_all < np.log(2)


def test_a_fact_that_stands_twice_is_needed_and_no_one_passage_is_named(reader: at.Model) -> None:
    found = reader.read(" ".join((FACTS[0], FACTS[1], "The cup of Velmir is red.", ASKED))).cite("red")
    assert found.cases == (Case.SPREAD,)
    assert found.statements[0].without_all > 2
    assert np.abs(found.lost).max() < 0.7, "either is enough"


def test_repeated_words_are_from_where_they_stood_whatever_attention_says(causal: at.Model) -> None:
    """Induction: what followed the same words before; the mean over heads looks nearer."""
    found = causal.read("river king door. box dog lamp. river king").cite("door")
    assert found.sources == ((0,),)
    assert found.lost[0, 0] > 10
    assert [found.order(0, method)[0] for method in (ATTENTION, COPYING)] == [1, 0]
    assert {layer for layer, _ in found.copying} == {1}


def test_a_chat_has_its_passages_in_its_messages_and_templates_stay(reader: at.Model) -> None:
    chat = [{"role": "user", "content": " ".join((*FACTS, "What is the cup of Velmir?"))}]
    found = reader.read(chat=chat).cite("red")
    assert [each.text for each in found.passages] == [*FACTS]
    assert found.sources == ((0,),)
    template = found.tokens.of_template
    assert not template & {place for each in found.passages for place in each.positions}


def test_given_passages_are_fields_and_nothing_else_is_taken_away(reader: at.Model) -> None:
    text, fields = "Passage:", {}
    for i, fact in enumerate(FACTS):
        text += " "
        fields[f"passage {i}"] = (len(text), len(text) + len(fact))
        text += fact
    found = reader.read(f"{text} {ASKED}", fields=fields).cite("red")
    assert [each.text for each in found.passages] == [*FACTS]
    assert found.kept == f"Passage: {ASKED}"
    assert found.by is None
    assert found.sources == ((0,),)
    with pytest.raises(InputError, match="leave --by and --context out"):
        reader.read(f"{text} {ASKED}", fields=fields).cite("red", by="sentence")


def test_a_prompt_may_end_in_a_passage(reader: at.Model) -> None:
    """Without that passage the answer stands behind what is left."""
    text, fields = ASKED, {}
    for i, fact in enumerate(FACTS[:2]):
        text += " "
        fields[f"passage {i}"] = (len(text), len(text) + len(fact))
        text += fact
    found = reader.read(text, fields=fields).cite("red cup")
    own = AutoModelForCausalLM.from_pretrained(DEMO / "reader", attn_implementation="eager").float()
    ids, written = list(found.tokens.ids), found.statements[0].positions
    assert written[0] == max(found.passages[1].positions) + 1 == len(ids) - len(written)

    def chance(without: set[int]) -> float:
        left = [id for i, id in enumerate(ids) if i not in without]
        chances = own(input_ids=torch.tensor([left])).logits[0].detach().double().log_softmax(-1)
        return sum(float(chances[i - 1, left[i]]) for i in range(len(left) - len(written), len(left)))

    gone = [{*each.positions} for each in found.passages]
    expected = [chance(set()) - chance(each) for each in (*gone, gone[0] | gone[1])]
    assert found.lost[0] == pytest.approx(expected[:2], abs=1e-3)
    assert found.statements[0].without_all == pytest.approx(expected[2], abs=1e-3)
    assert abs(expected[1]) > 0.01


@torch.no_grad()
def test_attention_is_the_plain_mean_of_plain_sums(causal: at.Model) -> None:
    found = causal.read("river king door. box dog lamp. river king").cite("door dog")
    model = AutoModelForCausalLM.from_pretrained(DEMO / "causal", attn_implementation="eager").float()
    output = model(torch.tensor([found.tokens.ids]), output_attentions=True)
    rows = [place - 1 for place in found.statements[0].positions]
    heads = [head for layer in output.attentions for head in layer[0]]
    for j, passage in enumerate(found.passages):
        total = 0.0
        for head in heads:
            for row in rows:
                total += sum(float(head[row, key]) for key in passage.positions)
        expected = total / len(heads) / len(rows)
        assert values(found, ATTENTION)[0, j] == pytest.approx(expected, abs=1e-6)
    copies, inside = np.zeros((4, 12)), [p for each in found.passages for p in each.positions]
    for i, layer in enumerate(output.attentions):
        for j, head in enumerate(layer[0]):
            for row in rows:
                best = max(inside, key=lambda key: (float(head[row, key]), -key))
                copies[i, j] += found.tokens.ids[best] == found.tokens.ids[row + 1] and head[row, best] >= 0.1
    copies /= len(rows)
    expected_heads = np.argwhere(copies >= max(0.1, copies.max() / 2)).tolist()
    assert [list(each) for each in found.copying] == expected_heads
    assert values(found, BY_NORM).sum() < 1


@torch.no_grad()
def test_a_translation_is_from_the_sentence_that_it_translates() -> None:
    model = at.load("demo-translate")
    read = model.read("The door opened. I saw the river.")
    found = read.cite("la porte s'est ouverte. j'ai vu la rivière.", context="pos:all")
    assert [each.text for each in found.statements] == ["la porte s'est ouverte.", "j'ai vu la rivière."]
    assert found.sources[0] == (0,)
    assert found.lost[1, 1] > found.lost[1, 0] > 1, "the first of two is translated at another place"
    assert found.kind.value == "cross"
    own = AutoModelForSeq2SeqLM.from_pretrained(DEMO / "translate", attn_implementation="eager").float()
    assert found.answer_tokens is not None
    decoder = torch.tensor([found.answer_tokens.ids])
    ids = torch.tensor([found.tokens.ids])
    output = own(input_ids=ids, decoder_input_ids=decoder, output_attentions=True)
    rows = [place - 1 for place in found.statements[1].positions]
    mean = np.mean([each[0].mean(0)[rows].mean(0).numpy() for each in output.cross_attentions], axis=0)
    expected = [mean[list(each.positions)].sum() for each in found.passages]
    assert values(found, ATTENTION)[1] == pytest.approx(expected, abs=1e-6)
    left = [id for i, id in enumerate(ids[0].tolist()) if i not in found.passages[0].positions]
    chances = [
        each(input_ids=torch.tensor([some]), decoder_input_ids=decoder).logits[0].double().log_softmax(-1)
        for each, some in ((own, ids[0].tolist()), (own, left))
    ]
    tokens = found.statements[1].positions
    before, after = (sum(float(each[i - 1, decoder[0, i]]) for i in tokens) for each in chances)
    assert found.lost[1, 0] == pytest.approx(before - after, abs=1e-3)


def test_many_passages_are_fitted_and_what_the_fit_puts_first_is_taken_away(reader: at.Model) -> None:
    things = "key door lamp boat bag pen horse dog cat hat coat ring desk chair book phone"
    names = "Norris Holso Kormel Julya Urgor"
    facts = [f"The {thing} of {name} is blue." for name in names.split() for thing in things.split()]
    facts.insert(41, FACTS[0])
    found = reader.read(" ".join((*facts, ASKED))).cite("red")
    assert found.subsets == 128
    assert found.statements[0].r2 > 0.3
    assert found.sources == ((41,),)
    measured = ~np.isnan(found.lost[0])
    assert 8 <= measured.sum() <= 16
    alone = reader.read(" ".join((*facts[38:44], ASKED))).cite("red", subsets=32)
    assert alone.subsets == 32
    assert alone.sources == ((3,),)


def case(facts: tuple[str, ...], question: str, answer: str | None, source: Any) -> str:
    given = {"passages": facts, "question": question, "answer": answer, "source": source}
    return json.dumps({key: value for key, value in given.items() if key != "answer" or value})


def test_cases_are_scored_as_each_is_told_alone(reader: at.Model, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    lines = [
        case(FACTS, ASKED, "red", 0),
        case(FACTS[::-1], ASKED, None, [2]),
        case(FACTS, NOWHERE, "none", None),
    ]
    file.write_text("\n".join((lines[0], "", *lines[1:])))
    found = reader.cite("Passage: {passages} {question}", file, generate=1)
    assert [each.line for each in found.judged] == [1, 3, 4]
    assert [each.named for each in found.judged] == [(0,), (2,), ()]
    assert [each.answer for each in found.judged] == ["red", "red", "none"]
    assert (found.none, found.wrongly_named, found.missed, found.misnamed) == (1, 0, 0, 0)
    assert found.chance == pytest.approx(1 / 3)
    removal = found.score("removal")
    assert removal is not None
    assert (removal.cases, removal.top1, removal.reciprocal, removal.tells) == (2, 1.0, 1.0, 1.0)
    text, fields = "Passage: ", {}
    for i, fact in enumerate(FACTS):
        text += "\n\n" if i else ""
        fields[f"passage {i}"] = (len(text), len(text) + len(fact))
        text += fact
    alone = reader.read(f"{text} {ASKED}", fields=fields).cite("red")
    methods = [each.method for each in found.scores]
    top = found.judged[0].tops[methods.index("attention")]
    assert top == pytest.approx(values(alone, ATTENTION).max(), rel=1e-6)
    longest = np.array([len(each.positions) for each in alone.passages])
    assert found.judged[0].tops[methods.index("longest passage")] == longest.max()


def test_without_gradients_all_else_is_the_same_and_their_columns_say_so(
    reader: at.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, file = " ".join((*FACTS, ASKED)), tmp_path / "cases.jsonl"
    whole = reader.read(text).cite("red")

    def back(*_: Any) -> None:
        raise AssertionError("nothing goes back")

    monkeypatch.setattr(torch.autograd, "grad", back)
    found = reader.read(text).cite("red", gradients=False)
    back_ones = {"gradient x input", "integrated gradients", "attention x gradient"}
    assert {each.method for each in found.columns if each.absent == "left out"} == back_ones
    assert back_ones <= {*whole.methods}
    assert {*found.methods} == {*whole.methods} - back_ones
    assert all(np.array_equal(each, values(whole, name)) for name, each in found.methods.items())
    assert (found.sources, found.certified) == (whole.sources, whole.certified)
    file.write_text(case(FACTS, ASKED, "red", 0))
    told = reader.cite("{passages} {question}", file, gradients=False)
    assert {ATTENTION, "removal"} <= {each.method for each in told.scores} <= {*Method} - back_ones


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"passages": ["a", "b"], "question": "q"}', "2: it has no 'source' (source is null"),
        ('{"passages": ["a", "b"], "question": "q", "source": 2}', "'source' is 2: passages are 0 to 1"),
        ('{"passages": ["a", ""], "question": "q", "source": 0}', "2: 'passages' is no list of texts"),
        ('{"passages": ["a", "b"], "question": 1, "source": 0}', "2: 'question' is no text"),
        ('{"passages": ["a", "b"], "question": "q", "answer": " ", "source": 0}', "2: 'answer' is empty"),
        ('["a"]', "2: a case is"),
    ],
)
def test_a_line_that_is_no_case_is_told_with_its_number(
    reader: at.Model, tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(case(FACTS, ASKED, "red", 0) + "\n" + line)
    with pytest.raises(InputError, match=re.escape(message)):
        reader.cite("{passages} {question}", file)


@pytest.mark.parametrize(("count", "others"), [(1, 1), (1, 2), (1, 6), (2, 2), (3, 4)])
def test_losses_drawn_by_lot_stand_out_so_far_in_one_of_twenty_texts(count: int, others: int) -> None:
    drawn = np.sort(np.random.default_rng(0).exponential(size=(200_000, count + others)), axis=1)
    stands_out = drawn[:, others] >= times(count, others) * drawn[:, others - 1]
    assert stands_out.mean() == pytest.approx(0.05, abs=0.003)
    assert times(count, 400) == 2


def test_weights_drawn_by_lot_seldom_name_a_passage_and_one_of_two_needs_more(reader: at.Model) -> None:
    text = f"The cup of Velmir is red. The key of Norris is blue. {ASKED}"
    named = twice = 0
    for seed in range(12):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(reader.tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2, pad_token_id=0,
        )  # fmt: skip
        found = at.wrap(LlamaForCausalLM(config).eval(), reader.tokenizer).read(text).cite(generate=1)
        named += bool(found.sources[0])
        less, most = sorted(np.abs(found.lost[0]))
        twice += most >= 2 * less
    assert named <= 2 < twice
    many = np.array([4.0, *[0.5, -0.5] * 3])
    for lost, candidates in (([4.0, 0.5], ()), ([4.0, 0.1], (0,)), (many, (0,))):
        assert candidates_of(np.array(lost)) == candidates
    assert sources_of(many, (0,), (1.5,)) == ()
