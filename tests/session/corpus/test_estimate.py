"""What a corpus will cost: counts that follow from files, sums by hand, and a run that it is held against."""

import time
from dataclasses import replace
from pathlib import Path

import corpus_of_demo as demo
import numpy as np
import pytest
from made_estimate import estimate

import attnscope as at
from attnscope.analysis.corpus.sketch import keys_of
from attnscope.errors import InputError
from attnscope.session.corpus import estimate as estimating
from attnscope.session.corpus import splits as planning
from attnscope.session.corpus import tree
from attnscope.session.corpus.question import CorpusQuestion, estimate_of


def test_texts_of_one_length_are_counted_to_the_last_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planning, "LEAST", 1500)
    file = tmp_path / "texts.txt"
    file.write_text("the dog barks.\n" * 700, newline="\n")
    each = len(at.load("demo").tokenizer("the dog barks.")["input_ids"])
    began = time.process_time()
    found = at.estimate(file, "demo", measures="entropy,same", workers=3, machines=2, device="cpu")
    whole = time.process_time() - began
    assert [each.name for each in tmp_path.iterdir()] == ["texts.txt"]
    assert (found.size, found.splits) == (10500, 7)
    assert (found.texts, found.tokens) == (pytest.approx(700), pytest.approx(700 * each))
    assert (found.sampled.error, found.sampled.tokens) == (0.0, each * found.sampled.texts)
    terms = {term.name: term for term in found.terms}
    assert all(term.seconds >= 0 for term in found.terms)
    assert terms["forward pass"].seconds > 0
    assert terms["forward pass"].count == pytest.approx(0.7 * each)
    assert terms["certificate"].count == 2
    assert terms["start: and the model"].count == 6
    assert sum(terms[name].whole for name in ("reading", "tokenizing", "forward pass")) < whole
    assert found.kept > 1000
    told = found.text(width=100)
    for part in (
        "on 2 machines of 3 workers each",
        "measured: ",
        f"calculated: {0.7 * each:.2f} thousand tokens",
    ):
        assert part in told


@pytest.mark.parametrize(("bytes_", "levels"), [(2**14, {"0"}), (300, {"0", "1", "2"})])
def test_what_a_run_keeps_and_reads_is_what_was_calculated_of_it(
    bytes_: int, levels: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "LEAST", bytes_)
    for module in (estimating, tree):
        monkeypatch.setattr(module, "FAN", 4)
    draw, file = np.random.default_rng(5), tmp_path / "texts.txt"
    words = np.array(["the", "dog", "barks", "boat", "old", "on", "it", "."])
    lines = [" ".join(draw.choice(words, draw.integers(2, 18))) for _ in range(300)]
    file.write_text("\n".join(lines) + "\n", newline="\n")
    measures = "entropy,same,previous,offset,pattern"  # of both signs, or 0 in many texts
    asked = CorpusQuestion((file,), measures=measures, workers=0, run=tmp_path / "run")
    found = estimate_of(demo.ModelRequest("demo", "cpu"), asked, demo.WANTED, demo.Hearing())
    run = demo.measure(file, tmp_path / "run", measures=asked.measures)
    assert found.texts == pytest.approx(run.read.texts, rel=1e-9 if len(levels) == 1 else 0.05)
    assert found.tokens == pytest.approx(run.read.tokens, rel=4 * found.sampled.error)
    files = list((tmp_path / "run" / "parts").iterdir())
    assert {each.name[0] for each in files} == levels
    assert 2 / 3 < found.kept / sum(each.stat().st_size for each in files) < 2


def test_rounded_values_of_both_signs_and_zeros_are_counted_on_either_side_of_zero() -> None:
    draw = np.random.default_rng(3)
    signs = draw.choice([-1, 0, 1], (20_000, 2), p=[0.2, 0.3, 0.5])
    values = np.stack([signs[:, 0] * draw.normal(3, 0.2, 20_000), signs[:, 1]], axis=1)
    values[::9, 0] = np.nan
    there = sum(len(set(keys_of(each[~np.isnan(each)]))) for each in values.T)
    spread, share = estimating._spread(values[:128])
    assert 2 / 3 < estimating._occurring(spread, share, 20_000) / there < 1.5


def test_wall_and_cores_are_sums_by_hand() -> None:
    found = estimate()
    assert found.seconds == pytest.approx(3 + 5 * 8 + 0.5 * 400 + 0.2 * 60)
    assert found.wall == pytest.approx(3 + 5 + 0.5 * 400 / 8)
    assert replace(found, splits=2).wall == pytest.approx(
        3 + 5 + 0.5 * 400 / 2
    )  # no more than there is to do
    many = replace(found, machines=200, splits=10**6)
    assert many.wall == pytest.approx(3 + 5 + 0.2 * 60)  # the command is what is waited for


def test_what_cannot_be_estimated_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the dog barks and barks.\n" * 3)
    hearing = demo.Hearing()
    at.estimate(file, "demo", device="cpu", measures="same", run="runs/x", listener=hearing)
    assert hearing.told[0] == "--estimate keeps nothing: --run runs/x is neither read nor written"
    for options, why in (
        ({"machines": 0}, "--machines is 0: it takes at least 1"),
        ({"longest": 3}, r"none of 3 texts can be read, so nothing is known of the rest: .*at most 3"),
    ):
        with pytest.raises(InputError, match=why):
            at.estimate(file, "demo", device="cpu", **options)  # type: ignore[arg-type]
