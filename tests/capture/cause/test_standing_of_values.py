"""That the value which a weight brings is of the token whose key got the weight is found out, and said."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from families import CONFIGS, sharp
from torch import Tensor, nn

from attnscope.analysis.verification import verify_model
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Selection, record
from attnscope.capture.cause.standing import APART, DISORDERED, CallStanding, Standings
from attnscope.capture.following.describe import provenance_of, tokens_by_id
from attnscope.results import Kind, Verdict
from attnscope.verify import certify
from attnscope.vocabulary import Standing

OWN, MIXED, UNKNOWN, OTHER = Standing.OWN, Standing.MIXED, Standing.UNKNOWN, Standing.OTHER
Change = Callable[[Tensor], Tensor]  # of tensors `batch token dim`

MOVES: dict[str, tuple[Change, Standing]] = {
    "rolled": (lambda rows: rows.roll(1, dims=1), OTHER),
    "flipped": (lambda rows: rows.flip(1), OTHER),
    "two exchanged": (lambda rows: rows[:, [1, 0, *range(2, rows.shape[1])]], OTHER),
    "all those of the first": (lambda rows: rows[:, :1].expand_as(rows), OTHER),
    "averaged": (lambda rows: rows.mean(1, keepdim=True).expand_as(rows), MIXED),
    "leaking": (lambda rows: rows + 0.01 * rows.roll(1, dims=1), MIXED),
    "summed up": (lambda rows: rows.cumsum(1), MIXED),
    "of some features rolled": (
        lambda rows: torch.cat([rows[..., :6], rows[..., 6:].roll(1, dims=1)], -1),
        MIXED,
    ),
}


def ids(length: int = 11, seed: int = 5) -> Tensor:
    return torch.randint(7, 90, (1, length), generator=torch.Generator().manual_seed(seed))


def bert(kernel: str = "eager", most: int = 20) -> hf.BertModel:
    torch.manual_seed(2)
    config = hf.BertConfig(
        vocab_size=97, hidden_size=24, num_attention_heads=4, num_hidden_layers=3, intermediate_size=30,
        max_position_embeddings=most,
    )  # fmt: skip
    return hf.BertModel._from_config(config, attn_implementation=kernel).eval()


def changes(change: Change, *modules: nn.Module) -> None:
    """Makes modules answer what `change` makes of their answer."""
    for module in modules:
        module.register_forward_hook(lambda _module, _given, made: change(made))


def judged(call: AttentionCall) -> tuple[Verdict, str, Standing]:
    certificate = certify(call, 1)
    return certificate.verdict, certificate.reason, certificate.positions


def recorded(model: nn.Module, **inputs: Tensor) -> Capture:
    return record(model, inputs or {"input_ids": ids()})


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize("side", ["value", "key"])
@pytest.mark.parametrize("move", MOVES)
def test_keys_and_values_of_different_tokens_are_not_certified(move: str, side: str, kernel: str) -> None:
    model, (change, standing) = bert(kernel), MOVES[move]
    changes(change, getattr(model.encoder.layer[1].attention.self, side))
    first, moved, last = recorded(model).calls
    assert judged(first) == judged(last) == (Verdict.CERTIFIED, "", OWN)
    if side == "key" and move == "of some features rolled":
        standing = OTHER  # the heads that have these features look for other tokens
    assert judged(moved) == (Verdict.PARTIAL, APART, standing)
    numbered = tuple(map(str, range(11)))
    assert (moved.key_tokens.labels == numbered) is (standing is OTHER)
    assert moved.query_tokens.labels == first.query_tokens.labels != numbered


@pytest.mark.parametrize("move", MOVES)
def test_keys_and_values_of_the_same_other_tokens_are_not_apart(move: str) -> None:
    """Where they are in another order than the queries, that is said; mixed both, they are certified."""
    model, (change, standing) = bert(), MOVES[move]
    layer = model.encoder.layer[1].attention.self
    changes(change, layer.key, layer.value)
    verdict, reason, told = judged(recorded(model).calls[1])
    assert told is (OTHER if move == "of some features rolled" else standing)
    assert reason != APART
    if told is OTHER:
        assert (verdict, reason) == (Verdict.PARTIAL, DISORDERED)
    else:  # all keys are one where they are averaged: no fault can be seen
        assert verdict is (Verdict.INCONCLUSIVE if move == "averaged" else Verdict.CERTIFIED)


@pytest.mark.parametrize(
    ("own", "standing", "verdict"),
    [(0.01, OTHER, Verdict.PARTIAL), (0.2, OTHER, Verdict.PARTIAL), (0.6, MIXED, Verdict.CERTIFIED)],
)
def test_keys_and_values_that_are_mostly_those_of_another_token_are_not_called_mixed(
    own: float, standing: Standing, verdict: Verdict
) -> None:
    model = bert()
    layer = model.encoder.layer[1].attention.self
    changes(lambda rows: own * rows + (1 - own) * rows.roll(1, dims=1), layer.key, layer.value)
    told = judged(recorded(model).calls[1])
    assert told == (verdict, DISORDERED if standing is OTHER else "", standing)
    layer.mixing = nn.Conv1d(24, 24, 2)  # a module that convolves: that its rows are mixed is its design
    assert judged(recorded(model).calls[1]) == (Verdict.CERTIFIED, "", MIXED)


def test_values_that_mix_more_tokens_than_their_keys_do_are_certified_and_called_mixed() -> None:
    """As where keys and values come out of convolutions of different width."""
    model = bert()
    layer = model.encoder.layer[1].attention.self
    changes(lambda rows: rows + rows.roll(1, dims=1), layer.key)
    changes(lambda rows: rows + rows.roll(1, dims=1) + rows.roll(2, dims=1), layer.value)
    assert judged(recorded(model).calls[1]) == (Verdict.CERTIFIED, "", MIXED)


@pytest.mark.parametrize("length", [11, 300])
def test_values_of_other_tokens_are_seen_behind_what_mixes_all_before(length: int) -> None:
    """As behind a state-space layer: a value is of its own token and all before, or of those before alone."""
    model = bert(most=320)
    changes(lambda rows: rows.cumsum(1), model.embeddings)
    behind = [record(model, {"input_ids": ids(length)}, Selection(heads=[1])).calls[1]]
    changes(MOVES["rolled"][0], model.encoder.layer[1].attention.self.value)
    behind += [record(model, {"input_ids": ids(length)}, Selection(heads=[1])).calls[1]]
    assert [(call.reservation, call.standing) for call in behind] == [("", MIXED), (APART, OTHER)]


def test_one_head_whose_queries_are_those_of_other_tokens_is_numbered() -> None:
    model = bert()
    rolled = MOVES["of some features rolled"][0]
    changes(rolled, model.encoder.layer[1].attention.self.query)
    moved = recorded(model).calls[1]
    assert moved.standing is OTHER
    assert moved.query_tokens.labels == tuple(map(str, range(11)))


@pytest.mark.parametrize("name", ["bloom", "deberta", "mpnet", "gptj"])
def test_models_whose_operations_are_followed_have_their_values_in_place(name: str) -> None:
    model, inputs = bypassing(name)
    assert {call.standing for call in record(model, inputs).calls} == {OWN}


@pytest.mark.parametrize("move", ["rolled", "averaged"])
@pytest.mark.parametrize(("name", "part"), [("mpnet", "v"), ("gptj", "v_proj")])
def test_values_of_other_tokens_are_seen_where_operations_are_followed(
    name: str, part: str, move: str
) -> None:
    model, inputs = bypassing(name)
    plain = record(model, inputs).calls[1]
    changes(MOVES[move][0], model.get_submodule(f"{plain.module}.{part}"))
    first, moved = record(model, inputs).calls[:2]
    assert (certify(first, 0).reason, first.standing) == (certify(plain, 0).reason, OWN)
    assert certify(moved, 0).verdict is Verdict.PARTIAL
    assert APART in certify(moved, 0).reason


def test_what_was_said_against_a_call_already_is_what_goes_on_being_said() -> None:
    call = recorded(bert()).calls[1]
    found = Standings({(call.module, call.call): CallStanding(OWN, OWN, OTHER, apart=True)})
    assert found.settled(call).reservation == APART
    assert found.settled(replace(call, reservation="said before")).reservation == "said before"
    assert found.settled(replace(call, call=7)).reservation == ""


@pytest.mark.parametrize("family", [name for name in CONFIGS if name != "t5"])
def test_ordinary_models_have_keys_and_values_of_the_same_tokens(family: str) -> None:
    for call in recorded(sharp(family)).calls:
        assert (call.standing, call.reservation) == (OWN, "")


def test_values_that_hang_on_no_token_say_nothing() -> None:
    model = bert()
    model.encoder.layer[1].attention.self.value.weight.data.zero_()
    first, constant, _ = recorded(model).calls
    assert (first.standing, constant.standing) == (OWN, UNKNOWN)
    assert certify(constant, 1).verdict is not Verdict.PARTIAL


def test_of_cross_attention_keys_and_values_are_those_of_the_encoder() -> None:
    torch.manual_seed(4)
    config = hf.BartConfig(
        vocab_size=97, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=6, encoder_ffn_dim=30, decoder_ffn_dim=30, max_position_embeddings=40,
    )  # fmt: skip
    model = hf.BartModel._from_config(config, attn_implementation="eager").eval()
    inputs = {"input_ids": ids(9), "decoder_input_ids": ids(7, seed=8)}
    crossing = Selection(kind=Kind.CROSS)
    assert {judged(call) for call in record(model, inputs, crossing).calls} == {(Verdict.CERTIFIED, "", OWN)}
    changes(MOVES["rolled"][0], model.decoder.layers[0].encoder_attn.v_proj)
    told = [judged(call)[::2] for call in record(model, inputs, crossing).calls]
    assert told == [(Verdict.PARTIAL, OTHER), (Verdict.CERTIFIED, OWN)]


@pytest.mark.parametrize("length", [70, 700])
@pytest.mark.parametrize("move", ["rolled", "averaged"])
def test_a_long_text_has_its_values_tried_as_well(length: int, move: str) -> None:
    torch.manual_seed(2)
    config = hf.LlamaConfig(
        vocab_size=97, hidden_size=24, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
        intermediate_size=30, max_position_embeddings=1400,
    )  # fmt: skip
    model = hf.LlamaModel._from_config(config, attn_implementation="eager").eval()
    changes(MOVES[move][0], model.layers[1].self_attn.v_proj)
    first, moved = record(model, {"input_ids": ids(length)}, Selection(heads=[1])).calls
    assert (first.reservation, moved.reservation) == ("", APART)


def test_a_whole_model_that_is_verified_names_the_layer_whose_values_are_those_of_others() -> None:
    model, inputs = bert(), {"input_ids": ids()}
    changes(MOVES["rolled"][0], model.encoder.layer[2].attention.self.value)
    tokens = tokens_by_id(ids()[0].tolist())
    checks = verify_model(model, inputs, tokens, provenance_of(model, tokens)).layers
    told = [{certificate.reason for certificate in check.certificates} for check in checks]
    assert told == [{""}, {""}, {APART}]


def test_a_whole_model_that_is_verified_says_in_which_layers_tokens_are_mixed_by_no_attention() -> None:
    model, inputs = bert(), {"input_ids": ids()}
    tokens = tokens_by_id(ids()[0].tolist())
    assert verify_model(model, inputs, tokens, provenance_of(model, tokens)).notes == ()
    layer = model.encoder.layer[2].attention.self
    changes(lambda rows: 0.6 * rows + 0.4 * rows.roll(1, dims=1), layer.key, layer.value)
    made = verify_model(model, inputs, tokens, provenance_of(model, tokens))
    assert {each.verdict for check in made.layers for each in check.certificates} == {Verdict.CERTIFIED}
    (note,) = made.notes
    assert note.startswith("L2:")
    assert "mixed" in note
