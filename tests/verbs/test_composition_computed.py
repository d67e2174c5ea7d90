"""Composition of heads: held against full matrices made by hand, and random circuits made in full."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import transformers as hf
from families import HEADS, HIDDEN, KEY_HEADS, ids, sharp
from scipy.stats import chi2
from torch import Tensor, nn

from attnscope.capture import Labels, Selection
from attnscope.capture.circuits.paths import Circuits, Factors, read_circuits
from attnscope.verbs.compose.circuits import (
    Composing,
    Pairs,
    beside_chance,
    cosines,
    facts,
    limits,
    reads,
    scores,
    spectrum,
    written,
)
from attnscope.verbs.compose.result import Through

LAYERS, DIM = 3, HIDDEN // HEADS
ALL = tuple(Through)


@pytest.fixture(scope="module", params=["bert", "gpt2", "llama", "gemma2", "albert"])
def read(request: pytest.FixtureRequest) -> tuple[str, nn.Module, Circuits]:
    model = sharp(request.param)
    return request.param, model, read_circuits(model, ids(), Selection(), Labels())


def norm(part: nn.Module, *, centred: bool, plus: float = 0.0) -> Tensor:
    """The matrix of a norm, rows times it, without the scale of each token."""
    weight = part.weight.detach().double() + plus
    middle = torch.eye(HIDDEN).double() - (1 / HIDDEN if centred else 0)
    return middle @ torch.diag(weight)


def heads_of(matrix: Tensor, count: int) -> list[Tensor]:
    """The columns of each head, those of a shared key head again for each that reads them."""
    columns = list(matrix.detach().double().split(matrix.shape[1] // count, 1))
    return [columns[head // (HEADS // count)] for head in range(HEADS)]


def linears(layer: nn.Module, names: tuple[str, str, str, str], keys: int = HEADS) -> list[list[Tensor]]:
    parts = [layer.get_submodule(name).weight.T for name in names]
    found = [heads_of(part, count) for part, count in zip(parts, (HEADS, keys, keys), strict=False)]
    return [*found, list(parts[3].detach().double().split(DIM, 0))]


def gpt2(layer: nn.Module) -> list[list[Tensor]]:
    fused = layer.attn.c_attn.weight.detach().double().split(HIDDEN, 1)
    return [
        *(heads_of(part, HEADS) for part in fused),
        [*layer.attn.c_proj.weight.detach().double().split(DIM)],
    ]


BERT = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
LLAMA = tuple(f"self_attn.{name}_proj" for name in "qkvo")
ALBERT = tuple(f"attention.{name}" for name in ("query", "key", "value", "dense"))
LAYER_OF: dict[str, Callable[[nn.Module], list[nn.Module]]] = {
    "bert": lambda model: [*model.encoder.layer],
    "gpt2": lambda model: [*model.h],
    "llama": lambda model: [*model.layers],
    "gemma2": lambda model: [*model.layers],
    "albert": lambda model: [model.encoder.albert_layer_groups[0].albert_layers[0]] * LAYERS,
}
MATRICES: dict[str, Callable[[nn.Module], list[list[Tensor]]]] = {
    "bert": lambda layer: linears(layer, BERT),
    "gpt2": gpt2,
    "llama": lambda layer: linears(layer, LLAMA, KEY_HEADS),
    "gemma2": lambda layer: linears(layer, LLAMA, KEY_HEADS),
    "albert": lambda layer: linears(layer, ALBERT),
}
READER: dict[str, Callable[[nn.Module], Tensor]] = {
    "gpt2": lambda layer: norm(layer.ln_1, centred=True),
    "llama": lambda layer: norm(layer.input_layernorm, centred=False),
    "gemma2": lambda layer: norm(layer.input_layernorm, centred=False, plus=1.0),
}
# what a layer's own output passes on its way, and what the stream passes in every layer after it
ON_THE_WAY: dict[str, Callable[[nn.Module], Tensor]] = {
    "bert": lambda layer: (
        norm(layer.attention.output.LayerNorm, centred=True) @ norm(layer.output.LayerNorm, centred=True)
    ),
    "albert": lambda layer: (
        norm(layer.attention.LayerNorm, centred=True) @ norm(layer.full_layer_layer_norm, centred=True)
    ),
    "gemma2": lambda layer: norm(layer.post_attention_layernorm, centred=False, plus=1.0),
}


def in_full(
    family: str, model: nn.Module, early: tuple[int, int], late: tuple[int, int], through: str
) -> float:
    """Elhage et al. 2021 with matrices of hidden by hidden."""
    layers, one = LAYER_OF[family](model), torch.eye(HIDDEN).double()
    reader, way = READER.get(family, lambda _: one), ON_THE_WAY.get(family, lambda _: one)
    _, _, values, outputs = MATRICES[family](layers[early[0]])
    writes = reader(layers[early[0]]) @ values[early[1]] @ outputs[early[1]]
    passed = range(early[0], late[0]) if family != "gemma2" else [early[0]]
    for layer in passed:
        writes = writes @ way(layers[layer])
    queries, keys, later, last = (each[late[1]] for each in MATRICES[family](layers[late[0]]))
    enter = reader(layers[late[0]])
    queries, keys, later = (enter @ each for each in (queries, keys, later))
    circuit = {"query": queries @ keys.T, "key": keys @ queries.T, "value": later @ last}[through]
    return float((writes @ circuit).norm() / (writes.norm() * circuit.norm()))


def test_scores_are_those_of_full_matrices_made_by_hand(read: tuple[str, nn.Module, Circuits]) -> None:
    family, model, circuits = read
    found = Composing(circuits, ALL, 3, 0).pairs()
    assert not found.reasons
    distinct = LAYERS - 1 if family == "albert" else LAYERS * (LAYERS - 1) // 2  # of an Albert by distance
    assert found.scores.shape == (3, distinct * HEADS**2)
    for i, (first, head, second, other) in enumerate(found.pairs.tolist()):
        if (head + 2 * other + first) % 5:  # a fifth of all, every layer and head among them
            continue
        for t, through in enumerate(ALL):
            expected = in_full(family, model, (first, head), (second, other), through)
            assert found.scores[t, i] == pytest.approx(expected, rel=1e-9)


def test_layers_that_share_their_weights_have_each_score_once_and_its_limit_is_of_so_many() -> None:
    def made(groups: int, layers: int) -> tuple[Circuits, list[tuple[int, int]], Pairs]:
        torch.manual_seed(0)
        config = hf.AlbertConfig(
            num_hidden_layers=layers, num_hidden_groups=groups, num_attention_heads=2, hidden_size=12,
            embedding_size=8, intermediate_size=20, vocab_size=97,
        )  # fmt: skip
        model = hf.AutoModel.from_config(config, attn_implementation="eager").eval()
        circuits = read_circuits(model, ids(), Selection(), Labels())
        found = Composing(circuits, ALL, 3, 0).pairs()
        return circuits, sorted({(pair[0], pair[2]) for pair in found.pairs.tolist()}), found

    circuits, there, found = made(1, 5)
    assert there == [(0, late) for late in range(1, 5)]  # 10 pairs of layers, of 4 distances
    # every pair of layers by itself has the scores of that which stands for it
    whole = Composing(circuits, ALL, 3, 0, (2, 1)).pairs()
    held = {tuple(pair): scores for pair, scores in zip(found.pairs.tolist(), found.scores.T, strict=True)}
    for (early, head, late, other), scores_ in zip(whole.pairs.tolist(), whole.scores.T, strict=True):
        assert held[0, head, late - early, other] == pytest.approx(scores_, rel=1e-9)
    last = found.pairs[:, 2] == 4
    way = circuits.paths.way[0, 4, "value"]
    early = spectrum(written(circuits.layers[0], None, way, range(2)))
    late = spectrum(reads(circuits.layers[4], Through.VALUE, dict.fromkeys(ALL), range(2)))
    expected = limits(early, late, 12, 0.05 / (3 * 4 * 2 * 2))
    assert torch.allclose(torch.tensor(found.limit[2, last]).reshape(2, 2), expected)
    # two groups of two layers: as many share their weights, and no two pairs of layers are alike
    assert len(made(2, 4)[1]) == 6


@pytest.fixture(scope="module")
def grouped() -> Circuits:
    return read_circuits(sharp("llama"), ids(), Selection(), Labels())


class Interleaved(Factors):
    """The mistake that is easily made: head h reads key head h modulo their number."""

    def key_head(self, head: int) -> int:
        return head % self.key_heads


def test_heads_that_read_the_wrong_group_or_are_exchanged_have_other_scores(grouped: Circuits) -> None:
    first, second = grouped.layers[0], grouped.layers[2]
    readers = {side: grouped.paths.reader[2, side] for side in ALL}
    own, every = grouped.paths.reader[0, "value"], [*range(HEADS)]

    def made(early: Factors, late: Factors, heads: list[int]) -> Tensor:
        return scores(written(early, own, (), range(HEADS)), reads(late, Through.KEY, readers, heads))

    right = made(first, second, every)
    for wrong in (
        made(Interleaved(**vars(first)), second, every),
        made(first, Interleaved(**vars(second)), every),
        made(first, second, [*every[1:], 0]),
    ):
        assert (wrong - right).abs().max() > 5e-3  # rounding is 1e-15


def test_what_is_in_the_scores_and_what_is_left_out_is_told(grouped: Circuits) -> None:
    inside, outside = facts(grouped)
    assert inside == ("residual additions", "the weights of norms before what the heads read")
    assert "rotary positions (queries and keys as at one position)" in outside
    assert "offsets" not in outside  # its matrices and norms have none
    _, outside = facts(read_circuits(sharp("t5"), ids(), Selection(), Labels()))
    assert any(each.startswith("what is added to scores (") for each in outside)
    inside, outside = facts(read_circuits(sharp("bert"), ids(), Selection(), Labels()))
    assert inside[1] == "the weights and the centring of norms on the way (2 to 4 from head to head)"
    assert "offsets" in outside
    assert not any("rotary" in each for each in outside)


def test_where_queries_are_normed_there_is_composition_through_values_alone() -> None:
    circuits = read_circuits(sharp("qwen3"), ids(), Selection(), Labels())
    found = Composing(circuits, ALL, 3, 0).pairs()
    assert [bool((row == row).all()) for row in found.scores] == [False, False, True]
    assert [bool((row != row).all()) for row in found.scores] == [True, True, False]
    assert found.reasons == (
        "L1, L2: no matrix alone makes its queries",
        "L1, L2: no matrix alone makes its keys",
    )


def random_circuit(values: Tensor, hidden: int, random: torch.Generator) -> Tensor:
    """A matrix of hidden by hidden with these singular values, its directions drawn evenly."""
    frames = []
    for _ in range(2):
        frame, triangle = torch.linalg.qr(torch.randn(hidden, hidden, generator=random, dtype=torch.float64))
        frames.append(frame * triangle.diagonal().sign())
    return frames[0][:, : len(values)] @ torch.diag(values) @ frames[1][: len(values)]


def test_chance_is_what_random_circuits_made_in_full_come_to() -> None:
    random, hidden, draws = torch.Generator().manual_seed(5), 12, 600
    first, second = torch.tensor([3.0, 1.0, 0.5]).double(), torch.tensor([2.0, 2.0]).double()
    slow = []
    for _ in range(draws):
        one, other = (random_circuit(each, hidden, random) for each in (first, second))
        slow.append(float((one @ other).norm() / (one.norm() * other.norm())))
    spectra = [each.square()[None] / each.square().sum() for each in (first, second)]
    mean, spread, below = beside_chance(
        torch.tensor([[0.3]]).double(), *spectra, cosines((3, 2), hidden, draws, 0)
    )
    expected = torch.tensor(slow)
    assert float(mean) == pytest.approx(float(expected.mean()), abs=4 * float(expected.std()) / draws**0.5)
    assert float(spread) == pytest.approx(float(expected.std()), rel=0.15)
    assert float(below) == pytest.approx(draws * float((expected < 0.3).float().mean()), abs=0.08 * draws)


def test_controls_below_are_counted_by_hand() -> None:
    one = torch.ones(1, 1).double()
    squares = torch.tensor([0.01, 0.04, 0.09, 0.16]).double()[:, None, None]
    for real, expected in ((0.25, 2.0), (0.5, 4.0), (0.05, 0.0)):
        mean, _, below = beside_chance(real * one, one, one, squares)
        assert (float(below), float(mean)) == (expected, pytest.approx(0.25))


def test_the_mean_square_by_chance_is_one_over_the_hidden_size_and_spectra_are_singular_values() -> None:
    squares = cosines((4, 6), 25, 400, 3)
    assert squares.shape == (400, 4, 6)
    assert float(squares.mean()) == pytest.approx(1 / 25, rel=0.05)
    assert torch.equal(squares, cosines((4, 6), 25, 400, 3))
    assert not torch.equal(squares, cosines((4, 6), 25, 400, 4))
    circuit = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for each in (circuit, circuit.transpose(1, 2)):
        values = torch.linalg.svdvals(each).square()
        expected = (values / values.sum(1, keepdim=True)).flip(1)
        assert torch.allclose(spectrum(each), expected)


def spectra(count: int, rank: int, uneven: float, seed: int) -> Tensor:
    """Shares of some circuits' squared singular values, the more unlike the more `uneven`."""
    drawn = (
        torch.rand(count, rank, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** uneven
    )
    shares: Tensor = drawn / drawn.sum(1, keepdim=True)
    return shares


@pytest.mark.parametrize(("ranks", "uneven"), [((6, 5), 1.0), ((8, 3), 4.0), ((2, 12), 0.2)])
def test_as_many_random_pairs_pass_the_limit_as_may(ranks: tuple[int, int], uneven: float) -> None:
    early, late = spectra(3, ranks[0], uneven, 1), spectra(2, ranks[1], uneven, 2)
    hidden, random = 400, torch.Generator().manual_seed(3)
    normal = torch.randn(60_000, *ranks, generator=random, dtype=torch.float64).square() / hidden
    rotated = cosines(ranks, hidden, 6_000, 4)
    for share in (0.05, 0.005):
        limit = limits(early, late, hidden, share)
        for squares in (normal, rotated):
            passed = ((early @ squares @ late.T).sqrt() > limit).double().mean(0) / share
            allowed = 4 / (share * len(squares)) ** 0.5  # standard errors
            assert (passed - 1).abs().max() < 0.05 + allowed


def test_the_limit_of_circuits_of_one_direction_is_a_quantile_of_chi_square() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    for share in (0.05, 1e-3, 1e-8):
        exact = (chi2.isf(share, 1) / 300) ** 0.5
        assert float(limits(one, one, 300, share)) == pytest.approx(exact, rel=0.01)
    none = torch.full((1, 2), torch.nan, dtype=torch.float64)
    found = limits(torch.cat([none, spectra(1, 2, 1.0, 0)]), spectra(3, 4, 1.0, 1), 50, 0.01)
    assert torch.equal(torch.isnan(found), torch.tensor([[True] * 3, [False] * 3]))


def test_norms_that_are_left_out_change_the_scores(grouped: Circuits) -> None:
    paths = replace(grouped.paths, reader=dict.fromkeys(grouped.paths.reader))
    bare = Composing(replace(grouped, paths=paths), ALL, 3, 0).pairs().scores
    assert abs(bare - Composing(grouped, ALL, 3, 0).pairs().scores).max() > 0.01
