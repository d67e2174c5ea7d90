"""Arrays as people paste them: Python lists, NumPy's and torch's prints, and what cannot be one array."""

import numpy as np
import pytest
import torch

from attnscope.cli.arrays.files import typed
from attnscope.errors import InputError

ROWS = [[1.0, 0.0, -2.5], [0.0, 1e8, 1.0]]


def read(text: str) -> list[list[float]]:
    return typed(text, "--q").values.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "1,0,-2.5; 0,1e8,1",
        "[[1, 0, -2.5], [0, 1e8, 1]]",
        "[[1, 0, -2.5],\n [0, 1e8, 1],]",
        "[1 0 -2.5; 0 1e8 1]",
        "((1, 0, -2.5), (0, 1e8, 1))",
        "np.array([[1, 0, -2.5], [0, 1e8, 1]], dtype=np.float32)",
        "torch.tensor([[1., 0., -2.5], [0., 1e8, 1.]], requires_grad=True)",
        "tensor([[1., 0., -2.5], [0., 1e8, 1.]], device='cuda:0', grad_fn=<MmBackward0>)",
        "Q = [[1, 0, -2.5], [0, 1e8, 1]]",
        "[[[1, 0, -2.5], [0, 1e8, 1]]]",
    ],
)
def test_an_array_is_read_as_it_is_pasted(text: str) -> None:
    assert read(text) == ROWS


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (4, 1), (30, 12)])
@pytest.mark.parametrize("show", [str, repr])
def test_what_numpy_and_torch_print_is_read_again(shape: tuple[int, int], show) -> None:
    values = np.random.default_rng(0).normal(size=shape).round(3)
    assert read(show(values)) == values.tolist()
    assert read(show(torch.tensor(values))) == values.tolist()
    whole = (values * 1000).astype(int)
    assert read(show(whole)) == whole.tolist()


def test_a_flat_list_is_one_row() -> None:
    assert read("[1, 0, 1]") == read("tensor([1., 0., 1.])") == [[1, 0, 1]]


def test_rows_of_a_torch_print_of_a_batch_of_one_are_read() -> None:
    values = torch.tensor([ROWS], dtype=torch.float64)
    torch.set_printoptions(precision=1, sci_mode=False)
    try:
        assert read(str(values)) == ROWS
    finally:
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[1, 0], [1]]", "--q is ragged: row 0 has 2 cells, row 1 has 1"),
        ("[[1, 0], [1, x]]", "--q, row 1, column 1: 'x' is no finite number"),
        ("[[1, 0], [1, 0]", "--q: a bracket is not closed"),
        ("[[1, 0], [1, 0]]]", "--q: what follows the array"),
        ("[[1, 0], [1, 0]] + 3", "--q: what follows the array"),
        ("[[1, 0], 3]", "--q has rows and single numbers side by side"),
        ("[[[1, 0]], [[0, 1]]]", "--q has 2 blocks of rows: two axes are needed"),
        (str(np.arange(4000).reshape(40, 100)), "--q is cut short by '...'"),
        ("[]", "--q is empty"),
        ("[[1, 0], []]", "--q is ragged: row 0 has 2 cells, row 1 has 0"),
        ("[[], []]", "--q is empty"),
        ("[" * 5000, "--q: a bracket is not closed"),
        ("[[1, , 2]]", "--q, row 0, column 1: '' is no finite number"),
    ],
)
def test_what_is_no_array_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
