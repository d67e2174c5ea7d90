"""Heads' outputs replaced at the attention call, against the same done by hand on the model's own weights."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, repeat

import pytest
import torch
from bypassing import MODELS
from families import HEADS, ids, sharp
from torch import Tensor, nn

from attnscope.capture import Selection
from attnscope.capture.intervening import changes
from attnscope.capture.intervening.changes import AnswerRows, Change, Cut, Put, Variant, Zero, strays
from attnscope.capture.intervening.experiments import Experiments, Others, experiments_on
from attnscope.capture.intervening.passing import answers_to, gradients
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites

# where each family's output projection stands; its heads lie side by side in what it reads
PROJECTIONS = {
    "bert": "encoder.layer.{}.attention.output.dense",
    "gpt2": "h.{}.attn.c_proj",
    "llama": "layers.{}.self_attn.o_proj",
    "t5": "encoder.block.{}.layer.0.SelfAttention.o",
    "albert": "encoder.albert_layer_groups.0.albert_layers.0.attention.dense",
    "bloom": "h.{}.self_attention.dense",
    "mpnet": "encoder.layer.{}.attention.attn.o",
}
FAMILIES = ("bert", "gpt2", "llama", "t5", "bloom", "mpnet")
TRACED = ("bloom", "mpnet")
EPSILON = torch.finfo(torch.float32).eps


def hidden(output: object) -> Tensor:
    return output.last_hidden_state  # type: ignore[attr-defined,no-any-return]


@cache
def model_and_inputs(family: str) -> tuple[nn.Module, dict[str, Tensor]]:
    if family not in TRACED:
        return sharp(family), ids()
    torch.manual_seed(0)
    model, inputs = MODELS[family]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval(), {name: value[:1] for name, value in inputs.items()}


def experiments(family: str, inputs: dict[str, Tensor] | None = None) -> Experiments:
    model, own = model_and_inputs(family)
    asked = AnswerRows(hidden, tuple(range(11)), 11)
    return experiments_on(model, inputs or own, Selection(), asked)


def plain(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return hidden(model(**inputs))


@contextmanager
def reading(model: nn.Module, path: str, change: object) -> Iterator[None]:
    """While open, the module at `path` reads what `change` makes of its input."""
    handle = model.get_submodule(path).register_forward_pre_hook(lambda _, args: (change(args[0]),))  # type: ignore[operator]
    try:
        yield
    finally:
        handle.remove()


def sliced(family: str, layer: int, heads: list[int], others: dict[str, Tensor] | None = None) -> Tensor:
    """The same heads' columns of the output projection set to zero by hand, in a run that nothing watches."""
    model, own = model_and_inputs(family)
    inputs = others or own
    projection = model.get_submodule(PROJECTIONS[family].format(layer))
    weight = projection.weight.data
    before, rows = weight.clone(), type(projection).__name__ == "Conv1D"
    dim = (weight.shape[0] if rows else weight.shape[1]) // HEADS
    try:
        for head in heads:
            own = slice(head * dim, (head + 1) * dim)
            weight[own] = 0 if rows else weight[own]
            if not rows:
                weight[:, own] = 0
        return plain(model, inputs)
    finally:
        weight.copy_(before)


def zeroed(layer: int, *heads: int) -> Variant:
    return tuple(Change(layer, head, Zero()) for head in heads)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_zeroed_head_is_the_model_without_its_columns_of_the_output_projection(family: str) -> None:
    made = experiments(family)
    asked = [(0, [2]), (1, [0]), (1, [5]), (1, [1, 4])]
    outcomes = made.run([zeroed(layer, *heads) for layer, heads in asked])
    for (layer, heads), outcome in zip(asked, outcomes, strict=True):
        by_hand = sliced(family, layer, heads)
        assert (by_hand - made.untouched).abs().max() > 1e-3, "the head does nothing: nothing is compared"
        assert torch.allclose(outcome.scores, by_hand, atol=2e-5), (layer, heads)
    assert not torch.allclose(outcomes[1].scores, sliced(family, 1, [5]), atol=1e-3), "another head's"
    assert made.plainness == 0, "nothing had to be run again"
    assert (made.tally.lost, made.tally.unseen) == (0, 0)
    assert made.tally.back == 2, "one batch for each layer"


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_changing_nothing_changes_no_bit(family: str) -> None:
    model, inputs = model_and_inputs(family)
    untouched = plain(model, inputs)
    made = experiments(family)
    assert made.faithful
    (outcome,) = made.run([()])
    assert torch.equal(outcome.scores, untouched)
    same = Put({place: answer.clone() for place, answer in made.answers.items()})
    (put_back,) = [made._alone((Change(1, 3, same),))]
    assert torch.equal(put_back.scores, untouched), "its own output in the place of a head's"


def test_what_layers_leave_elsewhere_is_noticed() -> None:
    model, inputs = model_and_inputs("bert")
    stale = {"seen": 0}

    def leave(_module: nn.Module, _args: object, output: Tensor) -> None:
        stale["seen"] += 1

    def take(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0] + (0.0 if stale["seen"] % 2 else 3.0), *args[1:])

    first, last = model.encoder.layer[0].output, model.encoder.layer[2]
    handles = [first.register_forward_hook(leave), last.register_forward_pre_hook(take)]
    made = experiments("bert", inputs)
    for handle in handles:
        handle.remove()
    assert not made.faithful, "the second run is not the first: whoever reads this is told"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_patched_head_is_the_one_of_the_other_text_at_the_projection(family: str) -> None:
    model, inputs = model_and_inputs(family)
    other = {**inputs, "input_ids": inputs["input_ids"].flip(1)}
    made = experiments(family)
    answers, _ = answers_to(model, other, made.sites)
    (outcome,) = made.run([(Change(1, 2, Put(answers)),)])

    path, seen = PROJECTIONS[family].format(1), []
    with reading(model, path, lambda given: seen.append(given.clone()) or given):
        plain(model, other)

    def patched(given: Tensor) -> Tensor:
        heads = given.clone().unflatten(-1, (HEADS, -1))
        heads[..., 2, :] = seen[0].unflatten(-1, (HEADS, -1))[..., 2, :]
        return heads.flatten(-2)

    with reading(model, path, patched):
        by_hand = plain(model, inputs)
    assert (by_hand - made.untouched).abs().max() > 1e-3
    assert torch.allclose(outcome.scores, by_hand, atol=2e-5)


def masked_by_hand(family: str, layer: int, queries: tuple[int, ...], keys: tuple[int, ...]) -> Tensor:
    """Attention of one layer in which a number is added to the scores of some edges in every head."""
    model, inputs = model_and_inputs(family)
    from transformers.modeling_utils import AttentionInterface

    from attnscope.capture.following.takeover import own_eager_function

    module = find_sites(model)[layer].module
    mask = torch.zeros(1, 1, 11, 11)
    for query in queries:
        mask[..., query, list(keys)] = float("-inf")

    def eager(of: nn.Module, q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor | None, **more: object):  # type: ignore[no-untyped-def]
        if of is module:
            attention_mask = mask if attention_mask is None else attention_mask + mask
        return own_eager_function(of)(of, q, k, v, attention_mask, **more)

    registered = dict(AttentionInterface._global_mapping)
    AttentionInterface._global_mapping["eager"] = eager
    try:
        return plain(model, inputs)
    finally:
        AttentionInterface._global_mapping.clear()
        AttentionInterface._global_mapping.update(registered)


@pytest.mark.parametrize(("queries", "keys"), [((8,), (3,)), ((6, 8), (2, 3, 4))], ids=["one", "span"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5"])
def test_a_cut_edge_is_minus_infinity_before_the_softmax(
    family: str, queries: tuple[int, ...], keys: tuple[int, ...]
) -> None:
    made = experiments(family)
    every = tuple(Change(1, head, Cut(queries, keys)) for head in range(HEADS))
    (outcome,) = made.run([every])
    by_hand = masked_by_hand(family, 1, queries, keys)
    assert (by_hand - made.untouched).abs().max() > 1e-3
    assert torch.allclose(outcome.scores, by_hand, atol=3e-5)
    assert made.tally.lost == 0
    assert made.tally.back == 1


def test_an_edge_that_is_a_rows_only_one_is_not_cut() -> None:
    with pytest.raises(InputError, match="layer 1 head 4: the query sees no other key"):
        experiments("gpt2").run([(Change(1, 4, Cut((0,), (0,))),)])


@pytest.mark.parametrize(("times", "told"), [(0.25, (1, 0)), (10, (0, 1))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["bert", "llama", "gpt_oss", "mpnet"])
def test_the_row_of_a_cut_edge_is_read_back_within_rounding_and_no_further(
    family: str, dtype: torch.dtype, times: float, told: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_and_inputs(family)
    model, right = copy.deepcopy(model).to(dtype), Cut.made

    def off(cut: Cut, seen: changes.Attended, head: int, parts: slice) -> Tensor:
        rows, values = right(cut, seen, head, parts), seen.values_of(head)[parts]
        left = 1 - seen.weights()[parts, head, cut.queries[0], cut.keys[0]].float()
        rows[0, cut.queries[0], 5] += times * 2 * seen.rounding * values.abs().max() / left[0]
        return rows

    made = experiments_on(model, inputs, Selection(), AnswerRows(hidden, tuple(range(11)), 11))
    every = tuple(Change(1, head, Cut((8,), (6,))) for head in range(HEADS))
    made.run([every])
    assert (made.tally.back, made.tally.lost) == (1, 0)
    monkeypatch.setattr(Cut, "made", off)
    again = experiments_on(model, inputs, Selection(), AnswerRows(hidden, tuple(range(11)), 11))
    again.run([every])
    assert (again.tally.back, again.tally.lost) == told


def test_layers_before_the_changed_one_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = model_and_inputs("bert")
    made = experiments("bert")
    runs = [0, 0, 0]

    def count(number: int) -> object:
        return lambda *_: runs.__setitem__(number, runs[number] + 1)

    handles = [
        layer.attention.self.query.register_forward_hook(count(n))
        for n, layer in enumerate(model.encoder.layer)
    ]
    made.run([zeroed(2, head) for head in range(HEADS)])
    for handle in handles:
        handle.remove()
    assert runs == [0, 0, 1]
    assert all("forward" not in vars(layer) for layer in model.encoder.layer)


@pytest.mark.parametrize("family", ["bert", "gpt2", "albert", "bloom"])
def test_a_batch_that_starts_at_a_layer_gives_what_single_whole_runs_give(family: str) -> None:
    made = experiments(family)
    last = max(layer for layer, _ in made.answers)
    variants = [zeroed(layer, head) for layer in (0, last) for head in range(HEADS)]
    for outcome, variant in zip(made.run(variants), variants, strict=True):
        alone = made._alone(variant)
        assert alone.control is None
        assert outcome.control is not None
        assert torch.allclose(outcome.scores, alone.scores, atol=1e-5)


def test_a_strayed_control_makes_every_variant_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = experiments("bert")
    told = chain([True], repeat(False))
    monkeypatch.setattr(Experiments, "_strays", lambda self, control: next(told))
    (outcome,) = made.run([zeroed(2, 1)])
    assert made.plainness == 1, "not from the layer's entry, but still as a batch"
    assert torch.allclose(outcome.scores, sliced("bert", 2, [1]), atol=2e-5)
    made.plainness = 0
    monkeypatch.setattr(Experiments, "_strays", lambda self, control: True)
    (outcome,) = made.run([zeroed(2, 1)])
    assert made.plainness == 2
    assert outcome.control is None
    assert torch.allclose(outcome.scores, sliced("bert", 2, [1]), atol=2e-5)


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        (float("nan"), 0.5, True),
        (0.5, float("nan"), True),
        (float("nan"), float("nan"), False),
        (float("-inf"), float("-inf"), False),
        (float("inf"), 0.5, True),
        (0.5, 0.5, False),
        (0.5, 0.7, True),
    ],
)
def test_an_answer_that_is_no_number_on_one_side_strays(wrong: float, right: float, told: bool) -> None:
    control, untouched = (torch.tensor([[1.0, each, -2.0]]) for each in (wrong, right))
    assert strays(control, untouched) is told


def other_inputs(family: str, seed: int) -> dict[str, Tensor]:
    _, inputs = model_and_inputs(family)
    drawn = torch.Generator().manual_seed(seed)
    ids = inputs["input_ids"]
    return {**inputs, "input_ids": ids[:, torch.randperm(ids.shape[1], generator=drawn)]}


GONE = [0], [1, 4]  # heads of layer 1


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_other_inputs_grow_where_their_entries_begin_to_differ(family: str) -> None:
    first, variants = experiments(family), [zeroed(1, *heads) for heads in GONE]
    first.run(variants)
    others, entries = Others(first, variants), list[int]()
    below = first.model.get_submodule(PROJECTIONS[family].format(0))
    for seed in (1, 2):
        inputs = other_inputs(family, seed)
        handle = below.register_forward_pre_hook(lambda _, args: entries.append(args[0].shape[0]))
        scores = others.scores(inputs, first.asked)
        handle.remove()
        assert scores is not None
        if family == "albert":  # one module is all its layers: no head of one can be cut out by hand
            continue
        by_hand = [plain(first.model, inputs), *(sliced(family, 1, heads, inputs) for heads in GONE)]
        for ours, theirs in zip(scores, by_hand, strict=True):
            assert torch.allclose(ours, theirs[0], atol=2e-5)
        assert all((each - by_hand[0]).abs().max() > 1e-3 for each in by_hand[1:])
    if family in ("albert", "bloom"):  # the other's positions are added for as many entries as it began with
        assert others.grows is False
        assert entries[-1] == 3
    else:
        assert entries == [1, 3, 1], "one entry, held once against all from the start"
    assert first.tally.lost == 0


def test_an_input_that_must_not_grow_has_all_its_entries_from_the_start() -> None:
    model = copy.deepcopy(sharp("llama"))
    first = experiments_on(model, ids(), Selection(), AnswerRows(hidden, tuple(range(11)), 11))
    first.run([zeroed(1, 0)])
    read = list[int]()

    def refuse(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        if len(args[0]) != read[-1]:
            raise RuntimeError("as many entries as there were")

    model.embed_tokens.register_forward_pre_hook(lambda _, args: read.append(len(args[0])))
    model.layers[1].register_forward_pre_hook(refuse)
    others, inputs = Others(first, [zeroed(1, 0)]), other_inputs("llama", 1)
    for _ in range(2):
        scores = others.scores(inputs, first.asked)
        assert scores is not None
        assert torch.allclose(scores[1], sliced("llama", 1, [0], inputs)[0], atol=2e-5)
    assert read == [1, 2, 2]


@pytest.mark.parametrize("family", ["bert", "llama", "bloom"])
def test_the_certificate_notices_that_the_wrong_head_was_zeroed(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnscope.capture.intervening import experiments as module

    right = module.with_changes

    def next_head(seen: changes.Attended, variants: list[Variant]) -> Tensor:
        moved = [tuple(Change(c.layer, (c.head + 1) % HEADS, c.what) for c in v) for v in variants]
        return right(seen, moved)

    monkeypatch.setattr(module, "with_changes", next_head)
    made = experiments(family)
    made.run([zeroed(1, 2)])
    assert (made.tally.back, made.tally.lost) == (0, 1)
    made.plainness = 2  # alone there is no untouched entry beside it
    made.run([zeroed(1, 2)])
    assert (made.tally.back, made.tally.lost) == (0, 2)


def test_where_a_model_changes_what_heads_answer_first_nothing_is_read_back() -> None:
    torch.manual_seed(0)
    model, inputs = MODELS["xlnet"]()
    one = {name: value[:1] for name, value in inputs.items()}
    made = experiments_on(model.eval(), one, Selection(), AnswerRows(hidden, tuple(range(11)), 11))
    made.run([zeroed(0, 1)])
    assert (made.tally.back, made.tally.lost, made.tally.unseen) == (0, 0, 1)


@pytest.mark.parametrize("family", ["bert", "bloom"])
def test_registries_and_model_are_as_before_however_it_ends(
    family: str, registries: tuple[dict[str, object], dict[str, object]]
) -> None:
    model, _ = model_and_inputs(family)
    made = experiments(family)
    before = [dict(table) for table in registries]
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    broken = Put({})
    with pytest.raises(KeyError):
        made._alone((Change(1, 0, broken),))
    assert [dict(table) for table in registries] == before
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()] == hooks
    assert all("forward" not in vars(module) for module in model.modules())
    assert torch._C._len_torch_function_stack() == 0


def test_outputs_of_a_text_of_another_length_are_refused() -> None:
    made = experiments("bert")
    answers, _ = answers_to(made.model, ids(length=9), made.sites)
    with pytest.raises(InputError, match="layer 0: an output of shape"):
        made.run([(Change(0, 0, Put(answers)),)])


@pytest.mark.parametrize("family", ["bert", "llama", "bloom"])
def test_gradients_are_those_of_finite_differences(family: str) -> None:
    model, inputs = model_and_inputs(family)
    made = experiments(family)
    torch.manual_seed(3)
    direction = torch.randn(hidden(model(**inputs)).shape)

    def score(output: object) -> Tensor:
        return (hidden(output) * direction).sum()

    slopes = gradients(model, inputs, made.sites, score)
    place, head, step = (1, 0), 2, 1e-2
    toward = torch.randn(made.answers[place][:, head].shape)

    def moved(size: float) -> float:
        answers = {each: answer.clone() for each, answer in made.answers.items()}
        answers[place][:, head] += size * toward
        scores = made._alone((Change(1, head, Put(answers)),)).scores
        return float((scores * direction).sum())

    numeric = (moved(step) - moved(-step)) / (2 * step)
    foretold = float((slopes[place][:, head] * toward).sum())
    assert foretold == pytest.approx(numeric, rel=2e-2)
    assert all(parameter.grad is None for parameter in model.parameters())
