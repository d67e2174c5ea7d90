"""Heads measured by the model's answer: which answer, beside which others, and where there is no number."""

from pathlib import Path

import numpy as np
import pytest

import attnscope as at
from attnscope.errors import InputError
from attnscope.render.files import as_csv
from attnscope.results import Overview, load

TEXT = "the door was closed because it was"


@pytest.fixture(scope="module")
def causal() -> at.Reading:
    return at.load("demo-causal").read(TEXT)


@pytest.fixture(scope="module")
def both(causal: at.Reading) -> Overview:
    return causal.measure(("importance", "logit"), answer="open", others=4, seed=3)


def test_importance_is_the_size_of_what_patching_with_zeros_foretells(
    causal: at.Reading, both: Overview
) -> None:
    foretold = causal.ablate(rank=True, replacement="zero", answer="open", top=1).predicted
    assert len(foretold) == 48
    for each in foretold:
        found = both.scores["importance"].values[each.layer, each.head]
        assert found == pytest.approx(abs(each.change), rel=1e-4, abs=1e-6)


def test_the_answer_that_is_named_is_the_one_that_is_measured(causal: at.Reading, both: Overview) -> None:
    likeliest = causal.measure("logit", others=4, seed=3)
    named = causal.measure("logit", answer="long", others=4, seed=3)
    assert np.array_equal(likeliest.main.values, named.main.values)
    assert not np.allclose(likeliest.main.values, both.scores["logit"].values)
    assert (
        "of the answer “long” after 7 was, probability 0.0938, beside the runner-up “heavy”"
        in likeliest.notes[0]
    )
    assert both.notes[0].endswith("and 4 others drawn with seed 3")


def test_the_straight_way_is_said_to_be_linear_but_for_one_norm(both: Overview) -> None:
    told = both.scores["logit"].description.apart
    assert told.endswith("; 1 norm held on the way, all parts add up to the logit")
    assert "norm" not in both.scores["importance"].description.apart


def test_limits_of_a_measure_with_a_sign_lie_around_nothing(both: Overview) -> None:
    scores = both.scores["logit"]
    largest = np.abs(scores.values).max()
    assert scores.limits == (-largest, largest)
    assert both.scores["importance"].limits == (0, both.scores["importance"].values.max())


def test_other_answers_are_drawn_by_their_seed(causal: at.Reading, both: Overview) -> None:
    again = causal.measure("logit", answer="open", others=4, seed=3).main
    other = causal.measure("logit", answer="open", others=4, seed=4).main
    assert np.array_equal(again.values, other.values)
    assert again.control is not None
    assert other.control is not None
    assert np.array_equal(again.control, both.scores["logit"].control)
    assert not np.allclose(again.control, other.control)
    assert causal.measure("logit", answer="open", others=0).main.control is None


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_the_control_comes_back_from_a_file(both: Overview, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    both.save(path)
    found = load(path)
    assert isinstance(found, Overview)
    for name, scores in both.scores.items():
        assert found.scores[name].control == pytest.approx(scores.control, rel=1e-12)
        assert found.scores[name].description == scores.description


def test_the_control_stands_beside_the_measure_in_a_table(both: Overview) -> None:
    lines = [line for line in as_csv(both).splitlines() if not line.startswith("#")]
    assert lines[0].startswith("layer,head,importance,logit,importance_others,logit_others,query,")
    cells = lines[1 + 12 * 2 + 5].split(",")
    scores = both.scores["logit"]
    assert cells[:2] == ["2", "5"]
    assert scores.control is not None
    assert (float(cells[3]), float(cells[5])) == pytest.approx((scores.values[2, 5], scores.control[2, 5]))


def test_beside_measures_of_the_text_one_without_meaning_says_why() -> None:
    reading = at.load("demo").read("the door was [MASK].")
    found = reading.measure(("entropy", "logit", "importance"))
    assert list(found.scores) == ["entropy", "logit", "importance"]
    assert (
        found.scores["logit"].absent == "between its heads and its answer stands gelu, no sum, matrix or norm"
    )
    assert np.isnan(found.scores["logit"].values).all()
    assert found.main.measure == "entropy"
    with pytest.raises(InputError, match=r"^no logit here: between its heads and its answer stands gelu"):
        reading.measure("logit")


def test_each_side_of_an_encoder_decoder_is_measured_by_the_text_that_is_written() -> None:
    reading = at.load("demo-translate").read("the door was closed.", target="la porte était ouverte.")
    for kind in ("encoder", "cross"):
        found = reading.measure(("importance", "logit"), kind=kind, others=2)
        assert "of the answer “la porte était ouverte.”" in " ".join(found.notes)
        assert found.scores["importance"].values.max() > 0
        assert bool(found.scores["logit"].absent) == (kind == "encoder")
    assert found.scores["logit"].description.apart.endswith(
        "11 norms held on the way, all parts add up to the logit"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "entropy", "answer": "open"}, "an answer is what importance, attention-gradient, "),
        ({"name": "importance", "answer": "xyzzyq"}, "the vocabulary of demo-causal has no token 'xyzzyq'"),
        ({"name": "importance", "query": "door"}, "an answer is measured over all queries and keys"),
        ({"name": "importance", "route": "returned"}, "--route returned has weights alone: importance needs"),
        (
            {"name": "importance", "others": -1},
            "others is -1: other answers to hold it against are 0 to 1000",
        ),
        ({"name": "importance", "seed": -1}, "seed is -1: it must be from 0 to 18446744073709551615"),
    ],
)
def test_what_cannot_be_asked_is_one_line(causal: at.Reading, options: dict, told: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError) as refused:
        causal.measure(**options)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_an_estimate_by_a_measure_is_held_against_what_happens(causal: at.Reading) -> None:
    found = causal.ablate(rank=True, by="logit", answer="open", top=5)
    assert found.predicted_by == "logit"
    assert found.how == "each output replaced by zeros"
    values = causal.measure("logit", answer="open", others=0).main.values
    for each in found.predicted:
        assert each.change == pytest.approx(-values[each.layer, each.head], rel=1e-6, abs=1e-9)
    assert {(each.layer, each.head) for each in found.heads} == {
        (each.layer, each.head) for each in found.predicted[:5]
    }
    with pytest.raises(InputError, match=r"--by logit knows of no other text"):
        causal.ablate(rank=True, by="logit", replacement="the door was open because it was")
    with pytest.raises(InputError, match=r"^no estimate 'rollout': patching, importance"):
        causal.ablate(rank=True, by="rollout")
    with pytest.raises(InputError, match="give --rank"):
        causal.ablate(by="logit")
