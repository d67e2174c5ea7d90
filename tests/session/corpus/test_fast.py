"""--fast: oneDNN's products against the model's own, on the numbers of a corpus."""

from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import numpy as np
import pytest
import torch
from torch import nn

from attnscope.analysis.corpus.names import DISCRETE, apart
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.model.loading import products
from attnscope.model.loading.products import ONEDNN, OneDNN
from attnscope.results import Verdict
from attnscope.session.corpus import question, reader
from attnscope.session.listener import Quiet

NAMES = ("entropy", "distance", "same", "fixed", "moved")
_has_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN")


def corpus(folder: Path, **more: Any) -> Any:
    file = folder / "texts.txt"
    file.write_text("\n".join(demo.TEXTS) + "\n")
    return demo.measure(file, folder / "run", measures=",".join(NAMES), **more)


@pytest.fixture
def plain(tmp_path: Path) -> Any:
    (tmp_path / "plain").mkdir()
    return corpus(tmp_path / "plain")


@_has_onednn
def test_fast_gives_the_numbers_of_the_models_own_layers_within_what_is_promised_and_says_so(
    plain: Any, tmp_path: Path
) -> None:
    fast = corpus(tmp_path, fast=True)
    assert fast.provenance.kernel == f"eager, {ONEDNN}"
    assert ONEDNN not in plain.provenance.kernel
    assert fast.verdict is Verdict.CERTIFIED
    assert 0 < fast.unlike < 1e-4
    longest = plain.read.longest
    for name, mine in fast.measures.items():
        low, high = MEASURES[name].limits(longest)
        width = high - low if np.isfinite(high - low) else float(plain.measures[name].largest.max())
        if name not in DISCRETE:
            np.testing.assert_allclose(
                mine.values, plain.measures[name].values, rtol=0, atol=reader.PROMISED * width
            )
    moved = np.abs(fast.measures["distance"].values - plain.measures["distance"].values)
    assert moved.max() > 0, "another product was used"
    with pytest.raises(InputError, match="fast"):  # a run that was begun with it goes on with it
        corpus(tmp_path)


@_has_onednn
def test_a_product_that_is_off_by_more_than_is_promised_is_refused_and_fails_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = products.product
    monkeypatch.setattr(products, "product", lambda layer, given: real(layer, given) * 1.001)
    with pytest.raises(InputError, match=r"off by .* of the range of '.*', more than 1e-05: leave it out"):
        corpus(tmp_path, fast=True, engine=question.alone)
    unchecked = reader.BatchReader
    monkeypatch.setattr(unchecked, "_made_fast", lambda self: OneDNN.put_into(self.model.module, ""))
    assert corpus(tmp_path, fast=True, engine=question.alone).verdict is Verdict.FAILED


class Own(nn.Linear):
    """Derived from torch's own: may do something else."""


@_has_onednn
def test_a_layer_that_computes_something_else_or_whose_bias_is_strided_is_left_alone() -> None:
    """oneDNN reads a bias as if its numbers stood side by side: other memory, where they do not."""
    strided, doubled, plain = (nn.Linear(5, 4) for _ in range(3))
    strided.bias = nn.Parameter(torch.randn(8)[::2])
    of_its_class = doubled.forward
    doubled.forward = lambda given: 2 * of_its_class(given)  # type: ignore[method-assign]
    x = torch.randn(3, 5)
    expected = [layer(x) for layer in (strided, doubled)]
    fast = OneDNN.put_into(nn.ModuleList([strided, doubled, plain]), "it")
    assert fast.layers == (plain,)
    with fast.left_out():
        assert torch.equal(doubled(x), expected[1])
    assert torch.equal(strided(x), expected[0])
    assert torch.equal(doubled(x), expected[1])


@_has_onednn
def test_only_torchs_own_linear_layers_in_float32_are_changed_and_all_come_back() -> None:
    shared = nn.Linear(5, 5)
    model = nn.ModuleDict(
        {"a": shared, "again": shared, "own": Own(5, 5), "coarse": nn.Linear(5, 5).to(torch.bfloat16)}
    )
    plain = {name: layer.forward for name, layer in model.items()}
    fast = OneDNN.put_into(model, "it")
    assert fast.layers == (shared,)
    assert {name for name, layer in model.items() if layer.forward != plain[name]} == {"a", "again"}
    x, weights, bias = torch.randn(3, 5), shared.weight.detach().double(), shared.bias.detach().double()
    expected = (x.double() @ weights.T + bias).float()
    torch.testing.assert_close(model["a"](x), expected)
    with torch.no_grad():
        shared.bias += 1  # the weights are the model's own
        torch.testing.assert_close(model["again"](x), expected + 1)
    with fast.left_out():
        assert shared.forward == plain["a"]
    assert shared.forward != plain["a"]
    del model["a"], model["again"]
    with pytest.raises(InputError, match=r"it has no torch\.nn\.Linear in float32"):
        OneDNN.put_into(model, "it")


def test_fast_on_no_cpu_or_in_another_type_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    for how, words in (({"dtype": "bfloat16"}, "--dtype bfloat16"), ({"device_map": {"": "cpu"}}, "several")):
        request = question._resolved(
            demo.ModelRequest("no/such-model", **how), demo.asked(tmp_path, tmp_path), Quiet()
        )
        with pytest.raises(InputError, match=f"--fast .*{words}.*: leave it out"):
            question._check_fast(request)


def test_how_far_two_are_apart_is_a_share_of_the_measures_range() -> None:
    mine, theirs = np.zeros((3, 2, 4)), np.zeros((3, 2, 4))
    mine[0, 1, 2], mine[1, 0, 3], mine[2, 0, 0] = 0.03, 0.6, 5.0
    names = ("entropy", "distance", "offset")
    off, of = apart(mine, theirs, names, 20)
    low, high = MEASURES["distance"].limits(20)
    assert (off, of) == (pytest.approx(0.6 / (high - low)), "distance")
    assert apart(mine[:1], theirs[:1], names[:1], 20)[0] == pytest.approx(0.03 / np.log(20))
    assert apart(mine[2:], theirs[2:], names[2:], 20) == (0.0, "")  # jumps
    theirs[0, 0, 0] = np.nan
    assert apart(mine[:1], theirs[:1], names[:1], 20) == (np.inf, "entropy")
