"""What one head would cost at any length: sums by hand, real runs, models made for longer texts."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checkpoints import tiny_bert
from families import DIM, HEADS, HIDDEN, KEY_HEADS
from made_outlines import outline
from outlined import config, grown, inputs, outlined, planned
from sharded import SHARDS, in_shards, llama, shard_name

from attnscope.arithmetic import Operands, attend
from attnscope.capture import Selection, record
from attnscope.capture.dry_run import DryCall
from attnscope.errors import InputError
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source.find import Source
from attnscope.model.source.listing import list_files
from attnscope.render.sheets import sheet_of
from attnscope.results import Cost, Kind
from attnscope.verbs.model.outline import cost_at, outline_plan, rate, recomputation, seconds

N = 11
LAYER = 2


def attention(queries: int, keys: int, heads: int, dim: int, value_dim: int | None = None) -> int:
    """Multiplications and additions of q.k and of the weights times the values."""
    return 2 * heads * queries * keys * (dim + (value_dim or dim))


def linear(rows: int, *sizes: tuple[int, int]) -> int:
    return sum(2 * rows * one * other for one, other in sizes)


def test_products_are_those_counted_by_hand_of_grouped_heads_and_chosen_experts_too() -> None:
    block = linear(N, *[(HIDDEN, HIDDEN)] * 4, (HIDDEN, 40), (40, HIDDEN)) + attention(N, N, HEADS, DIM)
    last = linear(N, *[(HIDDEN, HIDDEN)] * 3) + attention(N, N, HEADS, DIM)
    for layer in (0, 2):
        told = outlined(config("bert"), layer=layer, length=N).cost
        assert told.forward_flops == layer * block + last
    keys_and_values = [(HIDDEN, KEY_HEADS * DIM)] * 2
    gated = [(HIDDEN, 40)] * 2 + [(40, HIDDEN)]
    mine = linear(N, (HIDDEN, HIDDEN), *keys_and_values) + attention(N, N, HEADS, DIM)
    block = mine + linear(N, (HIDDEN, HIDDEN), *gated)
    assert outlined(config("llama"), layer=2, length=N).cost.forward_flops == 2 * block + mine
    one, two = (config("gpt_oss") for _ in range(2))
    two.num_experts_per_tok = 2
    per_expert = linear(N, (HIDDEN, 2 * 40), (40, HIDDEN))
    costs = [outlined(each, layer=1, length=N).cost.forward_flops for each in (one, two)]
    assert costs[1] - costs[0] == per_expert


def dry_call(softcap: float | None, biased: bool, sinks: bool) -> DryCall:
    sizes = {"heads": 6, "key_heads": 2, "queries": 7, "keys": 5, "dim": 4, "value_dim": 3, "blocks": 1}
    return DryCall(
        layer=0, scale=0.5, softcap=softcap, window=None, biased=biased, sinks=sinks, flops=0, **sizes
    )


@pytest.mark.parametrize(
    ("softcap", "biased", "sinks"), [(None, False, False), (2.0, True, False), (None, False, True)]
)
def test_recomputing_a_head_takes_what_it_really_takes(
    softcap: float | None, biased: bool, sinks: bool
) -> None:
    generator = torch.Generator().manual_seed(0)

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    real = Operands(
        q=made(1, 7, 4),
        k=made(1, 5, 4),
        v=made(1, 5, 3),
        scale=0.5,
        softcap=softcap,
        bias=made(1, 7, 5) if biased else None,
        allowed=torch.ones(1, 7, 5, dtype=torch.bool).tril(),
        sinks=made(1) if sinks else None,
    )
    storages = {each.data_ptr(): each.nbytes for each in vars(attend(real)).values()}
    flops, size = recomputation(dry_call(softcap, biased, sinks))
    assert size == sum(storages.values())
    assert flops == attention(7, 5, 1, 4, 3)


def test_memory_is_that_of_the_tensors_of_a_real_run() -> None:
    for family, layer in (("llama", 1), ("deepseek_v3", 2), ("swin", 1)):
        made = config(family)
        told = outlined(made, layer=layer, length=N).cost
        model = grown(made)
        calls = record(model, inputs(model, N), Selection(layers=[layer])).calls
        assert told.operands == sum(t.nbytes for c in calls for t in (c.q, c.k, c.v, c.output))
        assert told.kernel == 2 * sum(weights.nbytes for c in calls for weights in c.weights.values())


def test_the_weights_are_those_that_loading_up_to_the_layer_really_reads(tmp_path: Path) -> None:
    folder = in_shards(llama(), tmp_path / "m")
    source = Source(str(folder), "m", folder)
    files = list_files(source)
    planned_here = plan_model(files.checkpoint)
    told = outline_plan(planned_here, files, layer=LAYER, length=N).cost
    model = load_model(planned_here, layers=LAYER + 1)
    assert told.layers_loaded == model.layers == LAYER + 1
    assert told.weights == sum(each.nbytes for each in model.module.parameters())
    assert told.shards == tuple(file.name for file in model.checkpoint.files)
    assert told.shards == tuple(shard_name(number) for number in range(LAYER + 2))
    last = outline_plan(planned_here, files, length=N).cost
    assert len(last.shards) == SHARDS - 1


def test_a_pair_of_stacks_is_loaded_whole_and_reckoned_with_both_lengths(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    files = list_files(Source(str(folder), "m", folder))
    assert outline_plan(plan_model(files.checkpoint), files, length=N).cost.shards == ()
    assert outlined(config("bart"), length=N).cost.layers_loaded is None
    plan_here, files = planned(config("whisper"))
    told = outline_plan(plan_here, files, length=N).cost
    assert (told.kind, told.queries, told.keys) == (Kind.CROSS, N, 20)
    assert told.head_flops == attention(N, 20, 1, DIM)
    assert told.kernel == 2 * 4 * HEADS * N * 20


def test_the_time_is_the_products_over_the_rates_and_the_rate_is_measured() -> None:
    told = outlined(config("bert"), length=N).cost
    faster = seconds(told, 8e9, 4e9)
    assert faster == pytest.approx((told.forward_flops + 2 * told.repeats * told.head_flops) / 8e9)
    assert seconds(told, 4e9, 4e9) > faster > 0
    assert 1e8 < rate(torch.float32) < 1e15
    assert told.memory == told.weights + told.operands + told.kernel + told.reference


READS, LONG, MADE_FOR = 64, 200, 256


def made_for_more(family: str) -> Cost:
    """The cost at the long length of the same model with more positions."""
    longer = config(family)
    longer.max_position_embeddings = MADE_FOR
    cost = outlined(longer, length=LONG).cost
    assert cost is not None
    return cost


def test_beyond_a_table_of_positions_the_cost_is_that_of_a_model_with_a_larger_one() -> None:
    told, oracle = outlined(config("bert"), length=LONG).cost, made_for_more("bert")
    assert told is not None
    assert told.beyond
    assert not oracle.beyond
    table = 4 * (MADE_FOR - READS) * HIDDEN
    assert replace(told, beyond=False, weights=told.weights + table) == oracle
    told = outlined(config("llama"), length=LONG).cost
    assert told is not None
    assert told.beyond
    assert replace(told, beyond=False) == made_for_more("llama")


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_figure_is_gone_on_with_only_where_a_fourth_length_confirms_the_rule(degree: int) -> None:
    base = outline().cost
    assert base is not None

    def run(length: int) -> Cost | None:
        return None if length > READS else replace(base, length=length, kernel=7 + 3 * length**degree)

    if degree < 3:
        told = cost_at(1000, READS, READS, run, "some")
        assert told is not None
        assert told.kernel == 7 + 3 * 1000**degree
        return
    with pytest.raises(InputError, match="--length 1000: nothing can be said of a text so long, some reads"):
        cost_at(1000, READS, READS, run, "some")


@pytest.mark.parametrize("wrong", [0, -3, 10**9 + 1])
def test_what_is_no_length_is_refused(wrong: int) -> None:
    with pytest.raises(
        InputError, match=f"--length {wrong}: a text has 1 to 1,000,000,000 tokens, bert reads"
    ):
        outlined(config("bert"), length=wrong)


def test_growth_is_that_of_the_text_and_of_its_weights() -> None:
    base = outline().cost
    assert base is not None
    short, long = (replace(base, length=n, queries=n, keys=n) for n in (128, 1024))
    for at, weights in ((long, 64), (replace(long, keys=128), 8)):
        notes = sheet_of(replace(outline(), cost=at, further=(short,))).notes
        assert notes[-1] == f"from 128 to 1,024 tokens: 8 times the text, {weights} times the weights"
    beyond = replace(outline(), cost=replace(long, tower="other", beyond=True), further=(short,))
    assert not any("reads at most" in each for each in sheet_of(beyond).notes)
