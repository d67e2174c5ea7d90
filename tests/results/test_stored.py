"""What is written is read again: the same bytes, screens and pictures, for every kind of result."""

import json
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path

import made_results as made
import made_stored
import numpy as np
import pytest
import resealed

import attnscope
from attnscope.errors import InputError
from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.saving import NO_PICTURE
from attnscope.render.terminal.sheet import written
from attnscope.results import HeadAttention, Result, Verification, load
from attnscope.results.base.presented import Presented
from attnscope.results.result import KINDS
from attnscope.results.stored.strict import LAYOUT

STORED = (".json", ".npz")
# the picture of each kind once, and where a file holds something odd that is drawn
DRAWN = [
    "head with sink and terms", "returned weights", "view by words", "terms", "overview by words",
    "overview of several measures", "projection", "projection of words", "report by words",
    "comparison of texts", "masked words", "verification", "senses", "drift",
    "worked example with a mask", "scale study", "picture", "pictures", "sound", "sounds", "found pair",
    "found likeness", "flow", "flow of little", "ablation", "ablation of a group", "ablation foretold",
    "ablation token by token", "ablation of MLPs",
    "thumbnails", "relations", "two runs", "composition", "composition of a head", "dimensions",
    "long head", "window of a long head", "corpus", "corpus of linked words", "two corpora",
    "why", "why with no single reason", "layers", "links", "heads over prompts", "why over prompts",
    "contributions", "citation", "citation of sentences", "referee", "retrieval",
    "explanation", "explanation of nothing", "alignment", "alignment that was learnt",
    "timing", "timing beside its gold",
]  # fmt: skip
LEFT_OUT = ("picture", "pictures", "sound", "sounds")  # what JSON does not hold and a picture needs


@cache
def original(name: str) -> Result:
    return made_stored.MADE[name]()


def stored(folder: Path, name: str, suffix: str) -> Result:
    path = folder / f"stored{suffix}"
    path.write_bytes(files.numbers(original(name), suffix))
    return load(path)


def json_of(folder: Path, document: object) -> Path:
    path = folder / "changed.json"
    path.write_text(json.dumps(document))
    return path


def test_every_schema_is_among_the_kinds() -> None:
    made_here = {json.loads(files.as_json(original(name)))["schema"] for name in made_stored.MADE}
    assert made_here == {f"attnscope.{kind}/2" for kind in KINDS}
    assert {*KINDS.values(), HeadAttention} == {kind for kind in every_class(Presented) if is_dataclass(kind)}


def every_class(kind: type) -> Iterator[type]:
    """Those that are derived from a class, in the package itself."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("attnscope."):
            yield from (each, *every_class(each))


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("suffix", STORED)
@pytest.mark.parametrize("name", made_stored.MADE)
def test_a_result_that_is_read_is_written_as_the_same_bytes(tmp_path: Path, name: str, suffix: str) -> None:
    again = stored(tmp_path, name, suffix)
    assert type(again) is type(original(name))
    assert files.numbers(again, suffix) == files.numbers(original(name), suffix)
    assert files.as_csv(again) == files.as_csv(original(name))


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("suffix", STORED)
@pytest.mark.parametrize("name", made_stored.MADE)
def test_a_result_that_is_read_shows_the_same_on_a_terminal(tmp_path: Path, name: str, suffix: str) -> None:
    again = stored(tmp_path, name, suffix)
    assert written(again, width=100) == written(original(name), width=100)
    assert repr(again) == repr(original(name))


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("name", DRAWN)
def test_a_result_that_is_read_is_drawn_as_the_same_picture(tmp_path: Path, name: str) -> None:
    wanted = figure_bytes(figure_of(original(name)), "svg")
    assert figure_bytes(figure_of(stored(tmp_path, name, ".npz")), "svg") == wanted
    if name in LEFT_OUT:
        with pytest.raises(InputError, match="npz"):
            figure_of(stored(tmp_path, name, ".json"))
    else:
        assert figure_bytes(figure_of(stored(tmp_path, name, ".json")), "svg") == wanted


def test_every_kind_that_has_a_picture_is_drawn() -> None:
    every, drawn = ({type(original(name)) for name in names} for names in (made_stored.MADE, DRAWN))
    assert every - drawn == set(NO_PICTURE)


@pytest.mark.parametrize("suffix", STORED)
def test_numbers_that_are_none_come_back_as_what_they_were(tmp_path: Path, suffix: str) -> None:
    head = stored(tmp_path, "head with sink and terms", suffix)
    certificate = head.certificate
    assert certificate.weight_error == certificate.output_tolerance == np.inf
    assert np.isnan(certificate.output_error)
    assert certificate.faults[1].output_error == -np.inf
    assert np.isneginf(head.terms["mask"][0, 1:]).all()
    assert np.isnan(head.scaled[0, 1:]).all()
    path = tmp_path / f"nan{suffix}"
    path.write_bytes(files.numbers(made.head(sink=np.nan, sink_by_query=True), suffix))
    assert np.isnan(load(path).sink)


@pytest.mark.parametrize("suffix", STORED)
def test_tokens_that_are_one_and_the_same_stay_so_and_others_do_not(tmp_path: Path, suffix: str) -> None:
    same = stored(tmp_path, "head", suffix), stored(tmp_path, "head that was written", suffix)
    assert [head.query_tokens is head.key_tokens for head in same] == [False, True]
    equal = stored(tmp_path, "head of equal tokens", suffix)
    assert equal.query_tokens == equal.key_tokens
    assert equal.query_tokens is not equal.key_tokens
    assert equal.query_tokens.texts[1] == equal.query_tokens.items[0].piece == made_stored.HALF


def test_what_json_leaves_out_is_asked_for_by_the_name_of_the_file_that_has_it(tmp_path: Path) -> None:
    overview = stored(tmp_path, "overview", ".json")
    assert overview.weights is None
    assert overview.special_mass == original("overview").special_mass
    with pytest.raises(InputError, match="read from JSON"):
        overview.dense_weights  # noqa: B018 - the asking is what is refused
    picture = stored(tmp_path, "picture", ".json").picture
    assert picture.pixels is None
    assert picture.size == (31, 52)
    assert stored(tmp_path, "sound", ".json").sound.seconds == original("sound").sound.seconds


def test_a_file_of_another_layout_says_so(tmp_path: Path) -> None:
    document = json.loads(files.as_json(original("head")))
    for layout in (LAYOUT - 1, LAYOUT + 1, None, "three"):
        with pytest.raises(InputError, match="was written by another attnscope: its layout is"):
            load(json_of(tmp_path, document | {"layout": layout}))


@pytest.mark.parametrize("suffix", STORED)
def test_a_number_that_was_changed_is_not_the_same(tmp_path: Path, suffix: str) -> None:
    result = original("head")
    changed = result.weights.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 1)
    path = tmp_path / f"changed{suffix}"
    other = replace(result, weights=changed)
    path.write_bytes(files.numbers(other, suffix))
    assert files.numbers(load(path), suffix) != files.numbers(result, suffix)


def test_an_array_that_an_npz_lacks_is_named(tmp_path: Path) -> None:
    arrays = resealed.arrays_of(files.as_npz(original("head")))
    del arrays["scores"]
    path = tmp_path / "lacking.npz"
    path.write_bytes(resealed.archive(arrays))
    with pytest.raises(InputError, match="damaged: the array 'scores' is missing"):
        load(path)


def test_the_exit_of_a_failed_verification_is_the_same(tmp_path: Path) -> None:
    again = stored(tmp_path, "verification of what is infinite", ".json")
    assert isinstance(again, Verification)
    assert (again.verdict, again.outputs[0].difference) == ("failed", np.inf)


@pytest.fixture(scope="module")
def real() -> dict[str, Result]:
    """A report, an overview and the terms of a head of the bundled model, as every command makes them."""
    model = attnscope.load("demo")
    reading = model.read("the cat sat on the [MASK] because it was tired .")
    return {
        "report": reading.report(1, 2),
        "overview": reading.overview(),
        "link": reading.overview(query="it", key="cat"),
        "head": reading.head(1, 2),
        "map": reading.tsne(1, 2),
        "prediction": reading.predict(),
    }


def but_words(content: bytes) -> object:
    """A document without what is said of it in words, and the hashes of that; an archive as it is."""
    if not content.startswith(b"{"):
        return content
    told = json.loads(content)
    for key in ("answer", "next"):
        told.pop(key, None)
        told["digests"].pop(key, None)
    return told


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("suffix", STORED)
@pytest.mark.parametrize("name", ["report", "overview", "link", "head", "map", "prediction"])
def test_a_result_of_the_bundled_model_comes_back_to_the_bit(
    tmp_path: Path, real: dict[str, Result], name: str, suffix: str
) -> None:
    path = real[name].save(tmp_path / f"real{suffix}")
    again = load(path)
    assert but_words(files.numbers(again, suffix)) == but_words(path.read_bytes())
    assert written(again, width=100) == written(real[name], width=100)


def test_a_forger_who_renames_layer_and_tokens_gets_no_line_that_vouches_for_them(tmp_path: Path) -> None:
    """The weights still follow from q, k and v, and only that is said; what the head is of, `check` sees."""
    arrays = resealed.arrays_of(files.as_npz(made.head()))
    meta = json.loads(str(arrays["meta"]))
    meta["layer"] = meta["layer"] - 1
    for side in ("query_tokens", "key_tokens"):
        meta[side][1]["id"] = 7
    meta["provenance"]["digest"] = "sha256:" + 64 * "0"
    (tmp_path / "forged.npz").write_bytes(resealed.archive(arrays | {"meta": np.array(json.dumps(meta))}))
    forged = load(tmp_path / "forged.npz")
    assert forged.layer == made.head().layer - 1
    assert "✓ weights recomputed from the stored q, k, v; model, layer and tokens as stored, not checked" in (
        " ".join(forged.text(width=300).split())
    )


def test_numbers_of_a_measure_stand_once_in_an_npz_and_a_file_that_has_them_twice_is_read(
    tmp_path: Path,
) -> None:
    made_of, values = original("overview"), original("overview").scores["entropy"].values
    arrays = resealed.arrays_of(files.as_npz(made_of))
    assert [name for name in arrays if "entropy" in name and "values" in name] == []
    assert (arrays["entropy"] == values).all()
    meta = json.loads(str(arrays["meta"]))
    assert meta["measures"]["entropy"]["values"] == {"npz": "entropy"}
    meta["measures"]["entropy"]["values"] = {"npz": "measures entropy values"}
    twice = arrays | {"measures entropy values": values, "meta": np.array(json.dumps(meta))}
    (tmp_path / "twice.npz").write_bytes(resealed.archive(twice))
    again = load(tmp_path / "twice.npz")
    assert (again.scores["entropy"].values == values).all()
    assert again.text() == stored(tmp_path, "overview", ".npz").text()
