"""A model that tags tokens is asked for one tag, one that finds answers in a text for a span of it.

Each number is held against plain transformers.
"""

import math

import pytest
import torch
from checkpoints import bert_config, vocabulary_size
from torch import Tensor
from transformers import (
    AutoTokenizer,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
    DistilBertConfig,
    DistilBertForQuestionAnswering,
    GPT2Config,
    GPT2ForTokenClassification,
)

import attnscope as at
from attnscope import demo
from attnscope.errors import InputError

TEXT = "we saw the old door"
TAGS = {0: "O", 1: "B-door", 2: "B-DOOR", 3: "VERB", 4: "PRON", 5: "DET", 6: "ADJ"}
_TAGGED = {"num_labels": len(TAGS), "id2label": TAGS}
_SIZES = {"vocab_size": vocabulary_size(), "initializer_range": 0.6}
MAKERS = {
    "bert": lambda: BertForTokenClassification(bert_config(num_hidden_layers=3, **_TAGGED)),
    "gpt2": lambda: GPT2ForTokenClassification(
        GPT2Config(**_SIZES, **_TAGGED, n_embd=24, n_layer=3, n_head=4, n_positions=40)
    ),
}


def made(family: str):
    torch.manual_seed(9)
    return MAKERS[family]().eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(demo.folder())


@pytest.fixture(scope="module")
def tagger():
    return made("bert")


@pytest.fixture(scope="module")
def reading(tagger, tokenizer) -> at.Reading:
    return at.wrap(tagger, tokenizer).read(TEXT)


@torch.no_grad()
def log_chances(model, tokenizer, ids: Tensor | None = None) -> Tensor:
    """The log probabilities of all tags at all tokens, as transformers alone gives them."""
    given = dict(tokenizer(TEXT, return_tensors="pt"))
    return model(**given if ids is None else {**given, "input_ids": ids}).logits[0].double().log_softmax(-1)


@torch.no_grad()
def without(model, tokenizer, layer: int, head: int) -> Tensor:
    """The same with zeros for one head, in what the output projection of its layer reads."""

    def empty(_module, given):
        read = given[0].clone()
        read[..., head * 6 : (head + 1) * 6] = 0
        return (read,)

    handle = model.bert.encoder.layer[layer].attention.output.dense.register_forward_pre_hook(empty)
    try:
        return log_chances(model, tokenizer)
    finally:
        handle.remove()


def test_heads_are_taken_from_the_tag_that_is_named_at_the_token_that_is_named(
    tagger, tokenizer, reading
) -> None:
    before = log_chances(tagger, tokenizer)
    result = reading.ablate(query="old", answer="VERB")
    assert (result.answer.position, result.answer.ids, result.answer.text) == (4, (3,), "VERB")
    assert result.answer.probability == pytest.approx(float(before[4, 3].exp()), abs=1e-6)
    assert result.answer.likeliest == (int(before[4].argmax()) == 3)
    assert len(result.heads) == 12
    for each in result.heads:
        right = without(tagger, tokenizer, each.layer, each.head)[4, 3] - before[4, 3]
        assert each.change == pytest.approx(float(right), abs=1e-4)
    rival = reading.ablate(1, 2, query="old", answer="VERB", against="PRON")
    assert rival.heads[0].before == pytest.approx(float(before[4, 3] - before[4, 4]), abs=1e-5)


def test_without_a_token_it_is_the_one_whose_tag_is_surest(tagger, tokenizer, reading) -> None:
    own = log_chances(tagger, tokenizer)[1:-1]
    surest = reading.ablate(1, 2).answer
    assert surest.position == 1 + int(own.amax(-1).argmax())
    assert surest.ids == (int(own[surest.position - 1].argmax()),)
    for number, name in TAGS.items():
        named = reading.ablate(1, 2, answer=name).answer
        assert (named.ids, named.position) == ((number,), 1 + int(own[:, number].argmax()))
    assert reading.flow(answer="PRON").query == 1 + int(own[:, 4].argmax())
    assert reading.explain(None, "door", answer="VERB", controls=1).query == 1 + int(own[:, 3].argmax())


def test_names_that_differ_in_case_alone_are_told_apart(reading) -> None:
    assert [reading.ablate(0, 0, answer=name).answer.ids for name in ("B-door", "B-DOOR")] == [(1,), (2,)]
    assert reading.ablate(0, 0, answer="verb").answer.ids == (3,)
    with pytest.raises(InputError, match="no answer 'b-Door': O, B-door"):
        reading.ablate(0, 0, answer="b-Door")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_what_replacing_a_token_takes_from_a_tag_is_what_transformers_says(tokenizer, family: str) -> None:
    model = made(family)
    result = at.wrap(model, tokenizer).read(TEXT).flow("old", answer="ADJ")
    before, ids = log_chances(model, tokenizer), tokenizer(TEXT, return_tensors="pt")["input_ids"]
    told = result.ablated
    assert told is not None
    assert told.tag
    assert (told.answer, told.answer_ids) == ("ADJ", (6,))
    assert told.probability == pytest.approx(float(before[4, 6].exp()), abs=1e-6)
    for place in (1, 2, 3):
        other = ids.clone()
        other[0, place] = tokenizer.mask_token_id
        right = before[4, 6] - log_chances(model, tokenizer, other)[4, 6]
        assert told.effects[place] == pytest.approx(float(right), abs=1e-5)
    assert "“ADJ” at “old”" in " ".join(result.text().split())


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_parts_of_a_tags_logit_sum_to_it(tokenizer, family: str) -> None:
    model = made(family)
    result = at.wrap(model, tokenizer).read(TEXT).why(query="door", answer="DET")
    with torch.no_grad():
        right = model(**tokenizer(TEXT, return_tensors="pt")).logits[0, 5, 5]
    assert result.position == 5
    assert result.logit == pytest.approx(float(right), abs=1e-5)
    assert sum(part.direct for part in result.parts) == pytest.approx(float(right), abs=1e-4)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda read: read.ablate(0, 0, query="[CLS]"), "no token of the text and has no tag"),
        (lambda read: read.ablate(0, 0, query="pos:1-2"), "choose one of these"),
        (lambda read: read.why(answer="NOUN", query="old"), "no answer 'NOUN': O, B-door"),
        (lambda read: read.explain("old", "door", answer="NOUN", controls=1), "no answer 'NOUN'"),
    ],
)
def test_what_has_no_tag_is_refused(reading, ask, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(reading)


def test_heads_are_taken_from_the_span_that_is_named(tokenizer) -> None:
    torch.manual_seed(4)
    model = BertForQuestionAnswering(bert_config(num_hidden_layers=2)).eval()
    given = tokenizer("who saw it?", TEXT, return_tensors="pt")
    begin = given.sequence_ids().index(1)

    @torch.no_grad()
    def log_chance() -> float:
        made = model(**given)
        start, end = (each[0].double().log_softmax(-1) for each in (made.start_logits, made.end_logits))
        return float(start[begin + 2] + end[begin + 4])

    def empty(_module, read):
        cut = read[0].clone()
        cut[..., 12:18] = 0
        return (cut,)

    reading = at.wrap(model, tokenizer).read("who saw it?", pair=TEXT)
    told = reading.ablate(1, 2, answer="the old door")
    assert told.answer.ids == (begin + 2, begin + 4)
    before = log_chance()
    handle = model.bert.encoder.layer[1].attention.output.dense.register_forward_pre_hook(empty)
    after = log_chance()
    handle.remove()
    assert told.answer.probability == pytest.approx(math.exp(before), abs=1e-7)
    assert told.heads[0].change == pytest.approx(after - before, abs=1e-5)
    assert reading.ablate(1, 2).answer.text == reading.predict(1).spans[0].name
    with pytest.raises(InputError, match="it takes words of the text"):
        reading.ablate(1, 2, answer="he old door")


QUESTION = "who saw it?"


@pytest.fixture(scope="module")
def finder() -> DistilBertForQuestionAnswering:
    torch.manual_seed(4)
    sizes = {"dim": 24, "hidden_dim": 36, "n_layers": 3, "n_heads": 4, "vocab_size": vocabulary_size()}
    return DistilBertForQuestionAnswering(DistilBertConfig(**sizes, initializer_range=0.3)).eval()


@torch.no_grad()
def span_scores(model, tokenizer, replaced: int | None = None) -> Tensor:
    """The scores of all positions as the start and as the end, one token replaced by the mask."""
    given = tokenizer(QUESTION, TEXT, return_tensors="pt")
    if replaced is not None:
        given["input_ids"][0, replaced] = tokenizer.mask_token_id
    made = model(**given)
    return torch.stack([made.start_logits[0], made.end_logits[0]]).double()


def test_the_parts_of_both_ends_of_a_span_sum_to_their_logits(tokenizer, finder) -> None:
    start, end = span_scores(finder, tokenizer)
    reading = at.wrap(finder, tokenizer).read(QUESTION, pair=TEXT)
    result = reading.why(answer="the old door")
    assert result.logit == pytest.approx(float(start[8] + end[10]), abs=1e-5)
    assert sum(part.direct for part in result.parts) == pytest.approx(result.logit, abs=1e-4)
    rival = reading.why(answer="the old door", against="old door")
    assert rival.logit == pytest.approx(float(start[8] - start[9]), abs=1e-5)
    assert "“old door”" in " ".join(rival.text().split())
    with pytest.raises(InputError, match="it takes words of the text"):
        reading.why(answer="he old door")


def test_a_span_loses_what_transformers_says_where_a_token_is_replaced(tokenizer, finder) -> None:
    start, end = span_scores(finder, tokenizer).log_softmax(-1)
    reading = at.wrap(finder, tokenizer).read(QUESTION, pair=TEXT)
    result = reading.flow("the old door", answer="the old door")
    told = result.ablated
    assert told is not None
    assert (told.answer, told.answer_ids, result.query_span) == ("the old door", (8, 10), (8, 9, 10))
    assert told.probability == pytest.approx(float((start[8] + end[10]).exp()), rel=1e-5)
    for place in (1, 2, 3, 4, 6, 7):
        now_start, now_end = span_scores(finder, tokenizer, place).log_softmax(-1)
        lost = start[8] + end[10] - now_start[8] - now_end[10]
        assert told.effects[place] == pytest.approx(float(lost), abs=1e-4)
    said = " ".join(result.text().split())
    assert said.startswith("“the old door” depends most on ")
    assert "the answer is the one at" not in said
    with pytest.raises(InputError, match="from its own tokens: --from 'the old door'"):
        reading.flow("old door", answer="the old door")


def test_only_a_tagger_is_asked_for_a_tag(model: at.Model, tokenizer) -> None:
    words = model.read("we saw the [MASK]")
    with pytest.raises(InputError, match="tags none"):
        words.ablate(0, 0, query="saw")
    with pytest.raises(InputError, match="no --from: flow takes"):
        words.flow()
    assert (
        at.wrap(BertForMaskedLM(bert_config()), tokenizer).read("we [MASK]").ablate(0, 0).answer.position == 2
    )
