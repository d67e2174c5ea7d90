"""The arithmetic of products: by type, by torch's old and new switches, by what the hardware really does.

No processor here shortens products, so one that does is made of a mode below torch's functions: it rounds
what float32 products are made of, as such hardware does.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import attnscope
from attnscope.capture import arithmetic
from attnscope.capture.arithmetic import epsilon_of, precision_of, sums_of
from attnscope.results import Verdict

TEXT = "The cat sat on the mat because it was tired."
SINGLE = 2**-23
NEW = hasattr(torch.backends.cuda.matmul, "fp32_precision")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """All switches, and what was measured under a mode that no switch tells of, are put back."""
    forget()
    yield
    torch.set_float32_matmul_precision("highest")
    if NEW:
        for backend, operation in (("generic", "all"), ("cuda", "all"), ("mkldnn", "all")):
            torch._C._set_fp32_precision_setter(backend, operation, "none")
        for backend in ("cuda", "mkldnn"):
            torch._C._set_fp32_precision_setter(backend, "matmul", "none")
    forget()


def forget() -> None:
    arithmetic._multiplied.cache_clear()
    arithmetic._added.cache_clear()


def on(device: str, dtype: torch.dtype = torch.float32, width: int = 1) -> Tensor:
    with FakeTensorMode():
        return torch.empty(width, device=device, dtype=dtype)


class Shortened(TorchDispatchMode):
    """Hardware that keeps so many places of what it multiplies, and adds up in float32."""

    OPERATIONS = (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.baddbmm)

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in self.OPERATIONS:
            first = len(args) - 2
            args = (*args[:first], *map(self.shortened, args[first:]))
        return func(*args, **(kwargs or {}))

    def shortened(self, tensor: Tensor) -> Tensor:
        if tensor.dtype != torch.float32:
            return tensor
        significand, exponent = torch.frexp(tensor)
        return torch.ldexp((significand * 2 ** (self.places + 1)).round(), exponent - self.places - 1)


# by type --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "output", "expected"),
    [
        (torch.float16, torch.float32, (2**-10, "float16 on cpu")),
        (torch.float32, torch.bfloat16, (2**-7, "bfloat16 on cpu")),
        (torch.float64, torch.float32, (2**-23, "float32 on cpu")),
        (torch.float64, torch.float64, (2**-23, "float64 on cpu, its softmax perhaps in float32")),
    ],
)
def test_the_precision_is_that_of_the_coarsest_number(query, output, expected):
    assert precision_of(torch.empty(1, dtype=query), torch.empty(1, dtype=output)) == expected


def test_under_autocast_the_precision_is_that_of_its_products():
    plain = torch.empty(1)
    with torch.autocast("cpu", torch.bfloat16):
        assert precision_of(plain, plain) == (2**-7, "bfloat16 on cpu")
        assert epsilon_of(plain) == 2**-7
    assert precision_of(plain, plain) == (2**-23, "float32 on cpu")


# by switch ------------------------------------------------------------------------------------------


def old(precision: str) -> None:
    torch.set_float32_matmul_precision(precision)


def allowed() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True


def everywhere(precision: str) -> None:
    torch.backends.fp32_precision = precision


def on_cards(precision: str) -> None:
    torch.backends.cuda.matmul.fp32_precision = precision


def by_cudnn(precision: str) -> None:
    torch.backends.cudnn.fp32_precision = precision


SHORT = (2**-10, "TensorFloat-32 products on cuda")
LONG = (2**-23, "float32 on cuda")
newer = pytest.mark.skipif(not NEW, reason="this torch has only the old switches")


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ((), LONG),
        (((old, "high"),), SHORT),
        (((old, "medium"),), SHORT),
        pytest.param(((everywhere, "tf32"),), SHORT, marks=newer),
        pytest.param(((everywhere, "ieee"),), LONG, marks=newer),
        pytest.param(((everywhere, "bf16"),), LONG, marks=newer),  # no card has it: torch falls back
        pytest.param(((on_cards, "tf32"),), SHORT, marks=newer),
        pytest.param(((by_cudnn, "tf32"),), SHORT, marks=newer),  # it sets all of CUDA
        pytest.param(((everywhere, "tf32"), (on_cards, "ieee")), LONG, marks=newer),
        pytest.param(((old, "medium"), (everywhere, "ieee")), SHORT, marks=newer),  # the closer one counts
        pytest.param(((everywhere, "tf32"), (old, "highest")), LONG, marks=newer),
    ],
)
def test_on_a_card_products_are_as_short_as_any_switch_allows(switches, expected):
    for switch, *value in switches:
        switch(*value)
    card = on("cuda")
    assert precision_of(card, card) == expected
    assert epsilon_of(card) == expected[0]
    assert precision_of(on("cuda", torch.bfloat16), card) == (2**-7, "bfloat16 on cuda")


def test_sums_of_float16_on_a_card_are_as_coarse_as_torch_may_make_them():
    query = on("cuda", torch.float16, 64)
    assert precision_of(query, query) == (2**-10, "float16 on cuda")
    assert sums_of(query) == SINGLE
    torch.backends.cuda.matmul.allow_fp16_accumulation = True
    try:
        assert precision_of(query, query) == (32 * 2**-10, "float16 on cuda, sums in float16")
        assert sums_of(query) == 2**-10
        assert sums_of(on("cuda", torch.bfloat16, 64)) == SINGLE
    finally:
        torch.backends.cuda.matmul.allow_fp16_accumulation = False


# by what is done ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("places", "name"), [(10, "TensorFloat-32"), (7, "bfloat16"), (15, "15-bit")])
def test_shortened_products_are_found_whatever_the_switches_say(places, name):
    plain = torch.empty(1)
    with Shortened(places):
        assert precision_of(plain, plain) == (2.0**-places, f"{name} products on cpu")
    forget()
    assert precision_of(plain, plain) == (SINGLE, "float32 on cpu")


def test_products_that_keep_almost_nothing_are_a_fault_and_no_arithmetic():
    with Shortened(3):
        assert epsilon_of(torch.empty(1)) == 2**-7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_that_is_added_up_in_half_precision_is_found(dtype):
    class InHalf(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket is not torch.ops.aten.mm or args[0].dtype != dtype:
                return func(*args, **(kwargs or {}))
            total = torch.zeros(args[0].shape[0], args[1].shape[1], dtype=dtype)
            for at in range(0, args[0].shape[1], 32):
                total += args[0][:, at : at + 32].float().mm(args[1][at : at + 32].float()).to(dtype)
            return total

    tensor, epsilon = torch.empty(1, 24, dtype=dtype), torch.finfo(dtype).eps
    assert sums_of(tensor) == SINGLE
    forget()
    name = str(dtype).removeprefix("torch.")
    with InHalf():
        assert sums_of(tensor) == epsilon
        assert precision_of(tensor, tensor) == (12 * epsilon, f"{name} on cpu, sums in {name}")


# what follows from it -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: attnscope.load(name, device="cpu") for name in ("demo", "demo-causal")}


@pytest.mark.parametrize(("name", "places"), [("demo", 7), ("demo-causal", 10)])
def test_a_certificate_follows_the_products_that_its_model_was_run_with(models, name, places, monkeypatch):
    exact = models[name].read(TEXT).head(1, 1).certificate
    with Shortened(places):
        forget()
        short = models[name].read(TEXT).head(1, 1).certificate
        monkeypatch.setattr(arithmetic, "_products", lambda device: SINGLE)
        untold = models[name].read(TEXT).head(1, 1).certificate
    assert exact.verdict is Verdict.CERTIFIED
    assert exact.precision == "float32 on cpu"
    assert short.verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE)
    assert short.precision.endswith("products on cpu")
    assert short.weight_error > exact.weight_tolerance  # it takes the coarser tolerance
    config = models[name].module.config
    added = (config.hidden_size / config.num_attention_heads) ** 0.5 / 2  # in float32 in both
    largest = (exact.weight_tolerance * 2.0**23 - 1) / (1 + added)
    assert short.weight_tolerance == pytest.approx(2.0**-places * (1 + largest), rel=0.2)
    assert untold.verdict is Verdict.FAILED


def test_claims_about_an_answer_are_made_where_products_are_short(models):
    """Weights times values make the output, parts add up to the score, a link is cut and read back."""
    with Shortened(10):
        reading = models["demo-causal"].read("A dog sees a cat and a dog")
        verdicts = {each.verdict for layer in reading.verify().layers for each in layer.certificates}
        found = reading.overview(measure=("importance", "attention-gradient", "logit"))
        without = reading.ablate(1, 2, link="cat->see")
    assert verdicts <= {Verdict.CERTIFIED, Verdict.INCONCLUSIVE}
    assert len(found.scores) == 3
    assert all(np.isfinite(each.values).all() for each in found.scores.values())
    assert without.group is not None or without.heads
