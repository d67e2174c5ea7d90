"""No file is taken at its word: what was changed is named, what was not checked has no tick."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_every
import made_results as made
import made_stored
import numpy as np
import pytest
import resealed

from attnscope.errors import AttnscopeError, CertificateError
from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.sheets import no_picture
from attnscope.render.terminal.sheet import written
from attnscope.render.web.page import as_page
from attnscope.results import HeadAttention, Result, Verdict, load

KINDS = sorted(made_every.every())
FOLLOWING = ("HeadAttention", "HeadView")  # all that these show follows from what is stored with it


def a_bit(values: np.ndarray) -> np.ndarray:
    """The lowest bit of the first number."""
    changed = values.copy()
    changed.reshape(-1).view(np.uint8)[0] ^= 1
    return changed


def a_sign(values: np.ndarray) -> np.ndarray:
    return ~values if values.dtype.kind == "b" else -values


def rows(values: np.ndarray) -> np.ndarray:
    return np.roll(values, 1, axis=0)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"bit": a_bit, "sign": a_sign, "rows": rows}


def forgeries(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Each array of numbers changed in turn, in each way that makes a difference."""
    for name in sorted(arrays.keys() - {"meta"}):
        for change in CHANGES.values():
            values = arrays[name]
            if values.dtype.kind in "fib" and values.size:
                changed = change(values)
                if changed.tobytes() != values.tobytes():
                    yield name, arrays | {name: changed}


Field = tuple[str | int, ...]  # the keys and places that lead to it


def fields(told: Any, path: Field = ()) -> Iterator[tuple[Field, Any]]:
    """Everything that a document holds with the way to it; of a list itself and its first entry."""
    if isinstance(told, dict):
        for key, each in told.items():
            yield from fields(each, (*path, key))
        return
    yield path, told
    if isinstance(told, list) and told:
        yield from fields(told[0], (*path, 0))


def others(told: Any) -> list[Any]:
    """What might stand in its place: by a bit, by a sign, with its entries in another order or one fewer."""
    if isinstance(told, list):
        return [told[1:] + told[:1], told[::-1], told[:-1]] if told else [[1]]
    if isinstance(told, bool) or told is None:
        return [not told]
    if isinstance(told, str):
        return [told + "x"]
    return [-told, told + 1, math.nextafter(told, math.inf) if isinstance(told, float) else told ^ 1]


def forged_fields(document: dict[str, Any]) -> Iterator[Field]:
    """Each field in turn, while it is changed in the document, in each way that makes a difference.

    Of fields that many parts have alike, as those of measures, one is changed.
    """
    every = fields({key: each for key, each in document.items() if key != "digests"})
    alike = {
        (path[0], len(path), path[-2:] if path[-1] == 0 else path[-1]): (path, told) for path, told in every
    }
    for path, told in alike.values():
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        for other in others(told):
            if json.dumps(other) != json.dumps(told):
                place[path[-1]] = other
                yield path
        place[path[-1]] = told


def plainly(arrays: dict[str, np.ndarray], path: Path) -> Path:
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


@pytest.mark.parametrize("kind", made_every.FEW[:4])
def test_an_array_that_was_changed_is_named_and_nothing_is_shown(tmp_path: Path, kind: str) -> None:
    arrays = resealed.arrays_of(files.as_npz(made_every.every()[kind]))
    load(plainly(arrays, tmp_path / "whole.npz"))
    for name, changed in forgeries(arrays):
        with pytest.raises(CertificateError, match="was changed after it was written: ") as error:
            load(plainly(changed, tmp_path / "forged.npz"))
        assert f"'{name}.npy'" in str(error.value)


@pytest.mark.parametrize("kind", made_every.FEW[:4])
def test_a_key_that_was_changed_is_named(tmp_path: Path, kind: str) -> None:
    document = json.loads(files.as_json(made_every.every()[kind]))
    for key in document.keys() - {"schema", "layout", "digests"}:
        (tmp_path / "forged.json").write_text(json.dumps({**document, key: "other"}))
        with pytest.raises(CertificateError, match=f"'{key}' is not as it was"):
            load(tmp_path / "forged.json")
    for lacking in ({}, {"digests": None}, {"digests": {}}, {"digests": {"schema": 3}}):
        without = {key: value for key, value in document.items() if key != "digests"}
        (tmp_path / "bare.json").write_text(json.dumps({**without, **lacking}))
        with pytest.raises(CertificateError, match="was changed after it was written"):
            load(tmp_path / "bare.json")


def test_a_file_that_another_program_wrote_again_is_the_same(tmp_path: Path) -> None:
    document = json.loads(files.as_json(made.head(sink=1.0, scale=1.0, scaled=None or made.head().scores)))
    shuffled = dict(sorted(document.items(), reverse=True))
    text = json.dumps(shuffled, indent=3).replace(" 1.0,", " 1,")
    assert '"sink": 1,' in text
    (tmp_path / "again.json").write_text(text)
    with pytest.raises(CertificateError, match="'weights' does not follow"):  # and not that it was changed
        load(tmp_path / "again.json")


@pytest.mark.parametrize("kind", made_every.FEW)
def test_hashes_written_anew_bring_no_tick_back(tmp_path: Path, kind: str) -> None:
    arrays = resealed.arrays_of(files.as_npz(made_every.every()[kind]))
    path = tmp_path / "forged.npz"
    for name, changed in forgeries(arrays):
        if kind in FOLLOWING and np.allclose(changed[name], arrays[name], atol=1e-12, equal_nan=True):
            continue  # a last bit that no picture shows
        path.write_bytes(resealed.archive(changed))
        try:
            told = written(load(path), width=100)
        except AttnscopeError:
            continue
        assert "✓" not in told, name


@pytest.mark.parametrize("kind", made_every.FEW)
def test_a_field_that_was_changed_brings_no_tick_and_no_crash_with_hashes_or_without(
    tmp_path: Path, kind: str
) -> None:
    document = json.loads(files.as_json(made_every.every()[kind]))
    path, seen = tmp_path / "forged.json", set[Field]()
    for field in forged_fields(document):
        if field[0] not in {each[0] for each in seen} and field[0] not in (
            "schema",
            "layout",
        ):  # which are said to be unknown
            path.write_text(json.dumps(document))
            with pytest.raises(CertificateError, match=f"'{field[0]}' is not as it was"):
                load(path)
        path.write_text(json.dumps(resealed.document(document)))
        seen.add(field)
        try:
            told = written(load(path), width=100)
        except AttnscopeError:
            continue
        assert (
            "✓" not in told.replace("✓ weights recomputed", "") if kind in FOLLOWING else "✓" not in told
        ), field
    assert len(seen) > 20


def test_a_number_within_a_text_is_no_number(tmp_path: Path) -> None:
    told = json.loads(files.as_json(made.head()))
    told["notes"] = ["of 5.0, or 6.0]"]
    whole = resealed.document(told)
    (tmp_path / "x.json").write_text(json.dumps({**whole, "notes": ["of 5, or 6]"]}))
    with pytest.raises(CertificateError, match="'notes' is not as it was"):
        load(tmp_path / "x.json")


NOT_CERTIFIED = ("head with sink and terms", "returned weights", "verification of what is infinite")


@pytest.mark.parametrize("name", [*KINDS, *NOT_CERTIFIED])
def test_what_was_certified_once_is_called_so_no_more(tmp_path: Path, name: str) -> None:
    result = made_every.every()[name] if name in KINDS else made_stored.MADE[name]()
    again = load(result.save(tmp_path / "x.npz"))
    if type(result).__name__ in FOLLOWING and result.verdict is Verdict.CERTIFIED:
        assert again.verdict is Verdict.RECOMPUTED
    elif result.verdict in (None, Verdict.FAILED, Verdict.UNCERTIFIED):
        assert again.verdict is result.verdict
    else:
        assert again.verdict is Verdict.STORED
    assert again.verdict is load(again.save(tmp_path / "y.npz")).verdict


@pytest.mark.parametrize("kind", KINDS)
def test_no_medium_draws_a_tick_for_what_was_not_checked(tmp_path: Path, kind: str) -> None:
    again = load(made_every.every()[kind].save(tmp_path / "x.npz"))
    page = re.sub("<style>.*?</style>", "", as_page(again).decode(), flags=re.DOTALL)
    shown = [written(again, width=100), repr(again), page.split('id="document"')[0]]
    if not no_picture(type(again)):
        shown.append(figure_bytes(figure_of(again), "svg").decode())
    for told in shown:
        assert "certified" not in told.replace("uncertified", "").replace("not certified", ""), told
        assert ("✓ weights recomputed" in told) == ("✓" in told)
        if again.verdict is Verdict.STORED:
            assert "✓" not in told


def stages(changed: HeadAttention, **more: object) -> HeadAttention:
    return type(changed)(**{**vars(changed), **more})


@pytest.mark.parametrize("stage", ["q", "k", "v", "scores", "scaled", "weights", "output"])
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_stage_that_does_not_follow_is_named_by_whoever_has_the_hashes(
    tmp_path: Path, suffix: str, stage: str
) -> None:
    head = made.head(causal=True)
    wrong = getattr(head, stage).copy()
    wrong[4, 2] += 1e-6
    path = tmp_path / f"x{suffix}"
    path.write_bytes(files.numbers(stages(head, **{stage: wrong}), suffix))
    first = {"q": "scores", "k": "scores", "v": "output"}.get(stage, stage)
    with pytest.raises(CertificateError, match=f"L3 H11: '{first}' does not follow from the rest"):
        load(path)


@pytest.mark.parametrize(
    "changed", [{"scale": 0.4}, {"softcap": 2.0}, {"sink": 0.1}, {"allowed": np.ones((13, 13), bool)}]
)
def test_a_number_that_the_weights_were_not_made_with_is_seen(tmp_path: Path, changed: dict) -> None:
    with pytest.raises(CertificateError, match="does not follow"):
        load(stages(made.head(causal=True), **changed).save(tmp_path / "x.npz"))


def test_a_view_whose_weights_are_not_those_of_its_head_is_refused(tmp_path: Path) -> None:
    view: Result = made_stored.MADE["view by words"]()
    wrong = view.weights.copy()
    wrong[1] = wrong[1][::-1]
    type(view)(**{**vars(view), "weights": wrong}).save(tmp_path / "x.npz")
    with pytest.raises(CertificateError, match="not those of its tokens"):
        load(tmp_path / "x.npz")


def test_a_head_with_a_sink_of_each_query_is_as_stored(tmp_path: Path) -> None:
    again = load(made.head(sink=0.5, sink_by_query=True).save(tmp_path / "x.npz"))
    assert again.verdict is Verdict.STORED
