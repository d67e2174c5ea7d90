"""That position i stands for token i, and a value for its key's token, is found out by changing tokens."""

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from bypassing import bypassing
from families import sharp
from torch import Tensor, nn

from attnscope.analysis.heads.overview import measure_heads
from attnscope.attention import AttentionCall, Capture
from attnscope.capture import Selection, record
from attnscope.capture.cause import answers, standing
from attnscope.capture.cause.answers import Sketches
from attnscope.capture.cause.rows import Change, apart, exchanged, sets_for
from attnscope.capture.cause.standing import APART, DISORDERED, Kernels, Unasked
from attnscope.capture.following.describe import provenance_of, tokens_by_id
from attnscope.capture.following.takeover import KernelInputs
from attnscope.render.kit.words import certificate_words
from attnscope.results import Kind, Verdict
from attnscope.verbs.verify.answer import verify_model
from attnscope.verify import certify
from attnscope.vocabulary import Standing

OWN, MIXED, UNKNOWN, OTHER = Standing.OWN, Standing.MIXED, Standing.UNKNOWN, Standing.OTHER
SMALL = {
    "vocab_size": 97,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 30,
}


def ids(length: int = 11, batch: int = 1, seed: int = 5) -> Tensor:
    return torch.randint(7, 90, (batch, length), generator=torch.Generator().manual_seed(seed))


def bert(attn_implementation: str = "eager", **changes: Any) -> hf.BertModel:
    torch.manual_seed(2)
    config = hf.BertConfig(**{**SMALL, **changes})
    return hf.BertModel._from_config(config, attn_implementation=attn_implementation).eval()


def bart() -> hf.BartModel:
    torch.manual_seed(4)
    config = hf.BartConfig(
        vocab_size=97, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=6, encoder_ffn_dim=30, decoder_ffn_dim=30, max_position_embeddings=40,
    )  # fmt: skip
    return hf.BartModel._from_config(config, attn_implementation="eager").eval()


def reads_in_order(module: nn.Module, order: Callable[[int], list[int]]) -> None:
    """Makes an attention module read its tokens in another order, and put its answers back in place."""
    forward = module.forward

    def permuted(self: nn.Module, hidden_states: Tensor, *others: Any, **named: Any) -> Any:
        there = torch.tensor(order(hidden_states.shape[1]))
        output, *rest = forward(hidden_states[:, there], *others, **named)
        return (output[:, there.argsort()], *rest)

    module.forward = types.MethodType(permuted, module)


@pytest.mark.parametrize("count", [1, 2, 6, 20, 252])
def test_every_token_is_in_half_of_the_sets_and_no_two_in_the_same(count: int) -> None:
    sets = sets_for(count)
    assert sets is not None
    assert sets.sum(0).tolist() == [len(sets) // 2] * count
    codes = [tuple(column.tolist()) for column in sets.T]
    assert len(set(codes)) == count
    for one, other in combinations(codes[:12], 2):  # what reads two tokens is in more sets than any one is
        assert sum(a or b for a, b in zip(one, other, strict=True)) > len(sets) // 2


@pytest.mark.parametrize(
    "order", [lambda n: [*range(1, n), 0], lambda n: [1, 0, *range(2, n)]], ids=["rolled", "two exchanged"]
)
def test_a_layer_that_reads_its_tokens_in_another_order_is_numbered(order: Any) -> None:
    model = bert()
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


def test_more_tokens_than_are_told_apart_at_a_time_have_no_sets_of_their_own() -> None:
    assert sets_for(20, most=8 * 20) is not None
    assert sets_for(20, most=8 * 20 - 1) is None
    assert sets_for(21, most=8 * 21) is None  # these take 8 sets and the text twice


@pytest.mark.parametrize(
    ("length", "tried"),
    [
        (170, ""),
        (300, "on 8 random halves of the text"),
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
        (IN_PLACE, FIRST_TWO, True),
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
        (ALL, ALL, False),
        (IN_PLACE, ROLLED, True),
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


Move = Callable[[Tensor], Tensor]  # of tensors `batch token dim`

MOVES: dict[str, tuple[Move, Standing]] = {
    "rolled": (lambda rows: rows.roll(1, dims=1), OTHER),
    "all those of the first": (lambda rows: rows[:, :1].expand_as(rows), OTHER),
    "averaged": (lambda rows: rows.mean(1, keepdim=True).expand_as(rows), MIXED),
    "leaking": (lambda rows: rows + 0.01 * rows.roll(1, dims=1), MIXED),
    "of some features rolled": (
        lambda rows: torch.cat([rows[..., :6], rows[..., 6:].roll(1, dims=1)], -1),
        MIXED,
    ),
}


def changes(change: Move, *modules: nn.Module) -> None:
    """Makes modules answer what `change` makes of their answer."""
    for module in modules:
        module.register_forward_hook(lambda _module, _given, made: change(made))


def judged(call: AttentionCall) -> tuple[Verdict, str, Standing]:
    certificate = certify(call, 1)
    return certificate.verdict, certificate.reason, certificate.positions


def recorded(model: nn.Module, **inputs: Tensor) -> Capture:
    return record(model, inputs or {"input_ids": ids()})


@pytest.mark.parametrize("side", ["value", "key"])
@pytest.mark.parametrize("move", MOVES)
def test_keys_and_values_of_different_tokens_are_not_certified(move: str, side: str) -> None:
    model, (change, standing) = bert(attn_implementation="sdpa" if side == "value" else "eager"), MOVES[move]
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
    model = bert(max_position_embeddings=320)
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


@pytest.mark.parametrize(("name", "part", "move"), [("mpnet", "v", "rolled"), ("gptj", "v_proj", "averaged")])
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


def test_values_that_hang_on_no_token_say_nothing() -> None:
    model = bert()
    model.encoder.layer[1].attention.self.value.weight.data.zero_()
    first, constant, _ = recorded(model).calls
    assert (first.standing, constant.standing) == (OWN, UNKNOWN)
    assert certify(constant, 1).verdict is not Verdict.PARTIAL


def test_nothing_is_claimed_of_a_model_whose_queries_do_not_depend_on_the_text() -> None:
    model = bert()
    model.embeddings.word_embeddings.weight.data.zero_()
    assert {call.standing for call in record(model, {"input_ids": ids()}).calls} == {UNKNOWN}


def test_of_cross_attention_keys_and_values_are_those_of_the_encoder() -> None:
    model, inputs = bart(), {"input_ids": ids(9), "decoder_input_ids": ids(7, seed=8)}
    crossing = Selection(kind=Kind.CROSS)
    assert {judged(call) for call in record(model, inputs, crossing).calls} == {(Verdict.CERTIFIED, "", OWN)}
    changes(MOVES["rolled"][0], model.decoder.layers[0].encoder_attn.v_proj)
    told = [judged(call)[::2] for call in record(model, inputs, crossing).calls]
    assert told == [(Verdict.PARTIAL, OTHER), (Verdict.CERTIFIED, OWN)]


@pytest.mark.parametrize(
    "length",
    [
        70,
    ],
)
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


@pytest.fixture
def every_matrix(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """All products with matrices of more than some features are sketched; how many were is counted."""
    made: list[int] = []
    honest = answers._linear

    def counted(*given: Any) -> Tensor:
        made.append(len(given[1]))
        return honest(*given)

    monkeypatch.setattr(answers, "LARGE", 0)
    monkeypatch.setattr(answers, "MANY", 0)
    monkeypatch.setattr(answers, "_linear", counted)
    yield made
    assert made, "nothing was sketched"


def wide_bert() -> hf.BertModel:
    return bert(hidden_size=48, intermediate_size=60)


def changed_forward(module: nn.Module, change: Callable[[Any, Any], Any]) -> None:
    """`change` gets the module's forward and its input, and answers in its place."""
    forward = module.forward
    module.forward = types.MethodType(lambda self, given, *o, **n: change(forward, given), module)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "modernbert"])
def test_in_ordinary_models_every_position_is_its_token(family: str, every_matrix: list[int]) -> None:
    captured = record(sharp(family), {"input_ids": ids()})
    assert {call.standing for call in captured.calls} == {OWN}


def test_tokens_in_another_order_are_seen_in_the_layer_that_has_it(every_matrix: list[int]) -> None:
    model = wide_bert()
    reads_in_order(model.encoder.layer[1].attention.self, lambda count: [1, 0, *range(2, count)])
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, OTHER, OWN]


def test_what_mixes_positions_behind_a_matrix_is_seen_from_there_on(every_matrix: list[int]) -> None:
    model = wide_bert()
    changed_forward(
        model.encoder.layer[0].intermediate,
        lambda forward, given: (made := forward(given)) + made.roll(1, dims=1),
    )
    captured = record(model, {"input_ids": ids()})
    assert [call.standing for call in captured.calls] == [OWN, MIXED, MIXED]


def test_what_a_layer_was_given_and_returned_is_never_a_sketch(every_matrix: list[int]) -> None:
    sketchy = record(wide_bert(), {"input_ids": ids()}).calls
    with torch.no_grad():
        states = wide_bert()(ids(), output_hidden_states=True).hidden_states
    for call, given, layer in zip(sketchy, states, wide_bert().encoder.layer, strict=False):
        query = layer.attention.self.query(given)[0].view(11, 4, 12).transpose(0, 1)
        assert torch.equal(call.q, query)


@contextmanager
def sketching() -> Iterator[None]:
    with torch.no_grad(), Sketches():
        yield


@pytest.mark.parametrize("form", ["linear", "addmm"])
def test_a_sketch_reads_each_position_by_itself_and_all_of_it(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "LARGE", 7 * 40 * 35)
    drawn = torch.Generator().manual_seed(1)
    given, weight, bias = (torch.randn(*shape, generator=drawn) for shape in ((7, 35), (40, 35), (40,)))

    def product(of: Tensor) -> Tensor:
        return F.linear(of, weight, bias) if form == "linear" else torch.addmm(bias, of, weight.T)

    real = product(given)
    with sketching():
        plain = product(given)
        for dimension in (0, 34):
            other = given.clone()
            other[4, dimension] += 1
            moved = (product(other) - plain).abs().amax(1) > 1e-4
            assert moved.tolist() == [place == 4 for place in range(7)]
        assert torch.equal(product(given[:6]), real[:6]), "what is smaller is computed as it is"
    assert plain.shape == real.shape
    assert not torch.allclose(plain, real, atol=0.1)
    assert 0.5 < plain.std() / real.std() < 2
    assert torch.equal(product(given), real), "closed again"


def test_matrices_of_another_kind_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LARGE", 0)

    class Packed(nn.Parameter):
        pass

    given, weight = torch.randn(3, 5), Packed(torch.randn(64, 5))
    real = F.linear(given, weight)
    with sketching():
        assert torch.equal(F.linear(given, weight), real)


def test_weights_that_a_model_looks_at_are_those_of_its_kernel() -> None:
    asked: list[int] = []
    real = torch.rand(2, 3)
    lazy = Unasked.to_be_asked(lambda: asked.append(1) or real)
    assert lazy is not None
    assert asked == []
    for made, expected in (
        (lazy + 1, real + 1),
        (torch.stack([lazy, lazy]), torch.stack([real, real])),
        (lazy.mean(dim=0), real.mean(dim=0)),
    ):
        assert type(made) is Tensor
        assert torch.equal(made, expected)
    assert lazy.shape == real.shape


def asked_of(answered: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[int]]:
    """The zeros for an attention of 3 texts of 5 tokens, and of how many texts its kernel was asked."""
    asked: list[int] = []

    def kernel(_module: nn.Module, query: Tensor, *_given: Any, **_named: Any) -> tuple[Tensor, None]:
        asked.append(len(query))
        return answered(query.transpose(1, 2)), None

    query, key, value = torch.randn(3, 2, 5, 4), torch.randn(3, 2, 7, 4), torch.randn(3, 2, 7, 4)
    made, weights = Kernels().answer(KernelInputs(nn.Identity(), kernel, query, key, value, None, {}))
    assert weights is None
    return made, asked


def test_a_kernel_that_fails_of_some_texts_alone_is_asked_of_all() -> None:
    def of_three(rows: Tensor) -> Tensor:
        if len(rows) < 3:
            raise RuntimeError("three texts at a time")
        return rows.contiguous()

    made, texts = asked_of(of_three)
    assert (made.shape, texts) == ((3, 5, 2, 4), [2, 3])


def test_a_model_that_sorts_its_tokens_by_its_weights_is_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is asked after all: by the second layer, whose like has been answered before."""
    asked: list[int] = []
    honest = standing._weights
    monkeypatch.setattr(standing, "_weights", lambda given: asked.append(1) or honest(given))
    assert {call.standing for call in record(wide_bert(), {"input_ids": ids()}).calls} == {OWN}
    assert asked == []
    model = wide_bert()
    attention = model.encoder.layer[1].attention.self
    forward = attention.forward

    def by_weight(self: nn.Module, hidden: Tensor, *others: Any, **named: Any) -> Any:
        output, weights = forward(hidden, *others, **named)
        there = weights.sum((1, 2)).argsort(-1)[..., None].expand_as(output)
        return output + hidden.gather(1, there), weights

    attention.forward = types.MethodType(by_weight, attention)
    standings = [call.standing for call in record(model, {"input_ids": ids()}).calls]
    assert standings[:2] == [OWN, OWN]
    assert standings[2] is not OWN
    assert asked
