"""The emulated accelerator refuses what a card refuses, computes what the processor computes, and counts."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch


@pytest.fixture
def cuda(emulated: Any) -> Iterator[Any]:
    with emulated.present("cuda"):
        yield emulated


@pytest.fixture
def mps(emulated: Any) -> Iterator[Any]:
    with emulated.present("mps"):
        yield emulated


def on(device: str, *shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape).to(device)


def test_torch_takes_it_for_the_accelerator_of_this_machine_only_while_it_is_there(emulated: Any) -> None:
    with emulated.present("cuda"):
        assert torch.accelerator.is_available()
        assert str(torch.accelerator.current_accelerator()) == "emulated"
        assert torch.accelerator.device_count() == 2
    assert not torch.accelerator.is_available()


@pytest.mark.parametrize("other", ["cpu", "emulated:1"])
def test_tensors_of_two_devices_do_not_meet(cuda: Any, other: str) -> None:
    here, there = on("emulated", 3, 5), on(other, 5, 4)
    for together in (
        lambda: here @ there,
        lambda: here + on(other, 3, 5),
        lambda: torch.cat([here, on(other, 3, 5)]),
        lambda: torch.where(here > 2, here, on(other, 3, 5)),
        lambda: here.index_select(0, torch.tensor([1], device=other)),
        lambda: here.__setitem__(torch.tensor([0, 2]), on(other, 2, 5)),
        lambda: torch.nn.functional.embedding(torch.tensor([1], device=other), here),
        lambda: on(other, 4, 4)[torch.tensor([1], device="emulated")],
    ):
        with pytest.raises(RuntimeError, match="same device"):
            together()


def test_what_a_card_takes_from_the_processor_it_takes_too(cuda: Any) -> None:
    here = on("emulated", 3, 5)
    assert torch.equal((here * torch.tensor(2.0)).cpu(), 2 * on("cpu", 3, 5))
    assert torch.equal(here[torch.tensor([0, 2])].cpu(), on("cpu", 3, 5)[[0, 2]])


def test_as_mps_nothing_makes_a_float64_there_and_as_cuda_everything_does(emulated: Any) -> None:
    asked = (
        lambda here: here.double(),
        lambda here: here.to("cpu", torch.float64),  # Apple's converts on the device
        lambda here: here.cpu().double().to("emulated"),
        lambda here: torch.zeros(3, dtype=torch.float64, device="emulated:1"),
        lambda here: torch.tensor([1.5], dtype=torch.float64, device="emulated"),
    )
    with emulated.present("mps"):
        for each in asked:
            with pytest.raises(TypeError, match="doesn't support float64"):
                each(on("emulated", 3))
        assert on("emulated", 3).cpu().double().dtype == torch.float64
        assert torch.ones(3, dtype=torch.float64).to("emulated", torch.float32).device.type == "emulated"
    with emulated.present("cuda"):
        assert all(each(on("emulated", 3)).dtype == torch.float64 for each in asked)


def test_it_computes_what_the_processor_computes(cuda: Any) -> None:
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(12, 3, 20, batch_first=True).eval()
    there, given = copy.deepcopy(layer).to("emulated:1"), torch.randn(2, 7, 12)
    assert {each.device.index for each in there.parameters()} == {1}
    torch.testing.assert_close(there(given.to("emulated:1")).cpu(), layer(given))
    query = torch.randn(1, 3, 6, 4)
    fused = torch.nn.functional.scaled_dot_product_attention(*[query.to("emulated")] * 3)
    plain = torch.nn.functional.scaled_dot_product_attention(*[query] * 3)
    torch.testing.assert_close(fused.cpu(), plain)


def test_a_tensor_is_made_on_the_device_that_is_named_or_current(cuda: Any) -> None:
    with torch.device("emulated:1"):
        assert torch.arange(3).device.index == 1
    with torch.accelerator.device_index(1):
        assert torch.zeros(2, device="emulated").device.index == 1
    assert torch.zeros(2, device="emulated").device.index == 0
    with pytest.raises(RuntimeError, match="no device emulated:2"):
        torch.zeros(2, device="emulated:2")


def test_every_transfer_is_counted_with_its_bytes_and_no_operation_is(cuda: Any) -> None:
    here, there = on("emulated", 3, 5), on("emulated:1", 5, 4)
    with cuda.watched() as done:
        (here @ here.T).softmax(-1)
        here.cpu()
        there.to("emulated:0")
        on("cpu", 7).to("emulated:1")
        here.sum().item()
    places = [(each.source, each.target, each.shape, each.bytes) for each in done.transfers]
    assert places == [(0, -1, (3, 5), 60), (1, 0, (5, 4), 80), (-1, 1, (7,), 28)]
    assert (done.moved(), done.largest(), done.moved(1, 0), done.moved(-1, 0)) == (60, 60, 80, 0)
    assert done.values_read == 1
    assert done.operations["aten::mm"] == 1
    with cuda.watched() as nothing:
        pass
    assert nothing.transfers == ()
    assert nothing.operations == {}


def test_what_does_not_fit_is_torchs_own_error_and_memory_is_told(cuda: Any) -> None:
    before = torch.accelerator.memory_allocated(1)
    with cuda.memory(before + 4096, device=1):
        kept = torch.zeros(512, device="emulated:1")
        assert torch.accelerator.memory_allocated(1) == before + 2048
        assert torch.accelerator.get_memory_info(1) == (2048, before + 4096)
        with pytest.raises(torch.OutOfMemoryError, match="2048 bytes free"):
            torch.zeros(513, device="emulated:1")
        torch.zeros(513, device="emulated:0")
    del kept
    assert torch.accelerator.memory_allocated(1) == before


@pytest.fixture
def started(emulated: Any) -> Callable[[str], str]:
    """What a program prints in a process of its own that torch loads the backend in."""

    def run(program: str) -> str:
        environment = os.environ | emulated.environment("mps")
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return run


def test_a_process_that_is_started_has_it_as_torch_finds_any_backend(started: Callable[[str], str]) -> None:
    program = "import torch; print(*(torch.zeros(2, device=f'emulated:{i}').device for i in range(2)))"
    assert started(program) == "emulated:0 emulated:1\n"


def test_a_slope_is_the_processors(started: Callable[[str], str]) -> None:
    program = """
import torch
slopes = []
for device in ("cpu", "emulated:1", "emulated"):
    weight = torch.arange(1.0, 7).reshape(2, 3).to(device).requires_grad_()
    (weight.softmax(-1) ** 3).sum().backward()
    assert weight.grad.device == weight.device
    slopes.append(weight.grad.cpu())
assert slopes[0].abs().min() > 0
torch.testing.assert_close(slopes[1], slopes[0])
torch.testing.assert_close(slopes[2], slopes[0])
print("alike")
"""
    assert started(program) == "alike\n"
