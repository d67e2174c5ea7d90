"""`--head mean`: the mean over the heads of a layer, or of all, proved as its least proved one is."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnscope as library
from attnscope.results import Verdict, load

TEXT = "I was watching the door when [MASK] opened."


@pytest.mark.parametrize(("layer", "layers"), [("2", [2]), (None, [0, 1, 2, 3, 4])])
def test_the_mean_is_that_of_all_heads_one_by_one(attnscope, bert: Path, layer, layers) -> None:
    where = () if layer is None else ("--layer", layer)
    told = attnscope("heads", TEXT, "-m", str(bert), *where, "--head", "mean", "--json")
    assert told.exit_code == 0, told.stderr
    mean = json.loads(told.stdout)
    read = library.load(str(bert)).read(TEXT)
    each = [read.head(at, head).weights for at in layers for head in range(4)]
    assert np.abs(np.array(mean["weights"]) - np.mean(each, axis=0)).max() < 1e-12
    assert (mean["layer"], mean["head"]) == (int(layer) if layer else -1, -1)
    assert mean["verdict"] == "certified"
    certificates = [read.head(at, head).certificate for at in layers for head in range(4)]
    assert mean["certificate"]["weight_error"] == max(one.weight_error for one in certificates)
    assert mean["certificate"]["power"] == pytest.approx(min(one.power for one in certificates))


def test_what_is_proved_of_a_mean_is_what_is_proved_of_the_least_proved_head() -> None:
    from dataclasses import replace

    from attnscope.analysis.heads.mean import _least

    good = library.load("demo").read(TEXT).head(0, 0).certificate
    poor = replace(good, verdict=Verdict.INCONCLUSIVE, weight_error=0.0)
    assert _least([good, poor, good]).verdict is Verdict.INCONCLUSIVE
    assert _least([good, poor, good]).weight_error == good.weight_error
    assert _least([good, good]).verdict is Verdict.CERTIFIED


def test_the_library_has_it_too() -> None:
    read = library.load("demo").read(TEXT)
    one, whole = read.head(3, "mean"), read.head(None, "mean", words=True)
    assert one.weights == pytest.approx(np.mean([read.head(3, head).weights for head in range(12)], axis=0))
    assert whole.head.layer == -1
    with pytest.raises(library.AttnscopeError, match="is over the heads of one layer"):
        read.head("1-2", "mean")


def test_the_screen_says_that_it_is_a_mean_and_a_query_may_be_named(attnscope, bert, tmp_path) -> None:
    told = attnscope("heads", TEXT, "-m", str(bert), "--layer", "2", "--heads", "mean")
    assert told.stdout.startswith("The mean of all heads of L2 ")
    mean = "heads", TEXT, "-m", str(bert), "--head", "mean"
    asked = attnscope(*mean, "--query", "[MASK]", "--key", "the door")
    assert asked.stdout.startswith("From [MASK], the mean of all heads gives ")
    stored = tmp_path / "mean.npz"
    attnscope(*mean, "-o", str(stored), "-o", str(tmp_path / "mean.png"))
    assert load(stored).name == "the mean of all heads"
    assert "is the same to the last bit" in attnscope("check", str(stored)).stdout
    assert "The mean of all heads" in attnscope("show", str(stored)).stdout
    assert "the mean of all heads, to the last bit" in attnscope("compare", str(stored), str(stored)).stdout


def test_flow_is_over_the_mean_as_it_is(attnscope) -> None:
    flow = "flow", TEXT, "-m", "demo", "--from", "[MASK]"
    told = [attnscope(*flow), attnscope(*flow, "--head", "mean")]
    assert told[0].stdout == told[1].stdout
    assert told[0].exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("find", "--head", "mean", "--from", "I", "--to", "door"),
            "heads and flow show the mean over heads",
        ),
        (("tsne", "--head", "mean"), "the mean over heads has weights alone, this is of one head"),
        (("ablate", "--head", "mean"), "heads and flow show the mean over heads"),
        (("heads", "--head", "mean", "--layer", "0-1"), "is over the heads of one layer, or without --layer"),
        (("heads", "--head", "mean", "--terms"), "--head mean has weights alone: leave --terms out"),
        (("heads", "--head", "mean", "--grid"), "--head mean has weights alone: leave --grid out"),
        (("heads", "--head", "mean", "--show", "q"), "leave --show q out"),
        (("heads", "--head", "mean", "-o", "x.html"), "--head mean has no page"),
        (("heads", "--head", "mean", "--tiled"), "leave --head mean out"),
    ],
)
def test_where_there_is_no_mean_one_line_says_so(attnscope, arguments, said) -> None:
    told = attnscope(arguments[0], TEXT, *arguments[1:], "-m", "demo")
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1
