"""Every kind of result as data: all of it comes back, a wrong key is named, and its schema describes it."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import made_every
import made_stored
import numpy as np
import pytest
import resealed
from jsonschema import Draft202012Validator

from attnscope.errors import InputError
from attnscope.render import files
from attnscope.results import Result, Verdict, json_schema, load
from attnscope.results.result import KINDS

IN_NPZ_ALONE = {
    "Overview": {"weights"},
    "Picture": {"pixels"},
    "Sound": {"samples"},
    "SoundAttention": {"spectrogram"},
    "SoundHeads": {"spectrogram"},
}
ODD = {"odd": {"odd": "odd"}}  # what no field of any result can be


def sealed(document: dict[str, Any]) -> str:
    return json.dumps(resealed.document(document))


def read(folder: Path, content: str | bytes, suffix: str = ".json") -> Result:
    path = folder / f"read{suffix}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load(path)


def asked(folder: Path, content: str | bytes, suffix: str = ".json") -> Result | str:
    """What is read, or the line that refuses it."""
    try:
        return read(folder, content, suffix)
    except InputError as error:
        said = str(error)
    assert "\n" not in said
    return said


def differences(one: Any, other: Any, npz: bool, at: str = "") -> Iterator[str]:
    """Where two results are not the same: types, texts, and numbers bit by bit."""
    if isinstance(one, Verdict):
        if other not in (one.from_file(True), one.from_file(False)):
            yield at
    elif isinstance(one, np.ndarray):
        same = type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape
        if not (same and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")):
            yield at
        elif not np.array_equal(np.signbit(one), np.signbit(other), equal_nan=False) and npz:
            yield f"{at}: signs"
    elif is_dataclass(one):
        left_out = set() if npz else IN_NPZ_ALONE.get(type(one).__name__, set())
        if type(one) is not type(other):
            yield f"{at}: {type(other)}"
            return
        for each in fields(one):
            if each.name not in left_out and not each.name.startswith("told_"):
                yield from differences(
                    getattr(one, each.name), getattr(other, each.name), npz, f"{at}.{each.name}"
                )
    elif isinstance(one, dict):
        one = {key.from_file(False) if isinstance(key, Verdict) else key: each for key, each in one.items()}
        if list(one) != list(other):
            yield f"{at}: keys"
        for key in one.keys() & other.keys():
            yield from differences(one[key], other[key], npz, f"{at}[{key}]")
    elif isinstance(one, tuple):
        if len(one) != len(other):
            yield f"{at}: length"
        for i, pair in enumerate(zip(one, other, strict=False)):
            yield from differences(*pair, npz, f"{at}[{i}]")
    elif not (one == other or (one != one and other != other)) or (one is None) != (other is None):
        yield at


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("name", made_stored.MADE)
def test_every_field_of_every_result_comes_back(tmp_path: Path, name: str, suffix: str) -> None:
    result = made_stored.MADE[name]()
    again = read(tmp_path, files.numbers(result, suffix), suffix)
    assert list(differences(result, again, suffix == ".npz")) == []


def written_again(folder: Path, kind: str) -> str:
    return files.as_json(read(folder, files.as_json(made_every.every()[kind])))


@pytest.mark.parametrize("kind", made_every.FEW)
def test_a_key_that_is_missing_is_named_or_follows_from_the_rest(tmp_path: Path, kind: str) -> None:
    text = written_again(tmp_path, kind)
    document, needed = json.loads(text), []
    for key in document.keys() - {"schema", "exact", "digests"}:
        told = asked(tmp_path, sealed({name: each for name, each in document.items() if name != key}))
        if isinstance(told, str):
            assert key == "layout" or f"'{key}' is missing" in told or f"array '{key}'" in told, told
            needed.append(key)
        else:
            assert files.as_json(told) == text, key
    assert len(needed) >= 4


@pytest.mark.parametrize("kind", made_every.FEW)
def test_a_key_of_another_type_is_named_or_follows_from_the_rest(tmp_path: Path, kind: str) -> None:
    text = written_again(tmp_path, kind)
    document, refused = json.loads(text), []
    for key in document.keys() - {"schema", "layout", "exact", "digests"}:
        plain = {name: each for name, each in document.items() if name != "exact"}
        told = asked(tmp_path, sealed(plain | {key: ODD}))
        if isinstance(told, str):
            assert "is damaged" in told
            assert f"'{key}" in told, told
            refused.append(key)
        else:
            assert files.as_json(told) == text, key
    assert len(refused) >= 4


def objects(value: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object of a document with the keys on the way to it."""
    if isinstance(value, dict):
        yield way, value
        for key, each in value.items():
            yield from objects(each, (*way, key))
    elif isinstance(value, list):
        for each in value:
            yield from objects(each, way)


@pytest.mark.parametrize("kind", made_every.FEW)
def test_a_key_that_belongs_nowhere_is_named(tmp_path: Path, kind: str) -> None:
    text = written_again(tmp_path, kind)
    document, refused = json.loads(text), 0
    # objects of a list that have the same keys are alike
    different = {(way, *each): each for way, each in objects(document)}
    for (way, *_), each in different.items():
        if way[:1] in (("exact",), ("digests",)):
            continue
        each["surprise"] = ODD
        told = asked(tmp_path, sealed(document))
        del each["surprise"]
        if isinstance(told, str):
            assert "surprise" in told
            refused += 1
        else:  # it stands in what is told for readers alone
            assert way
            assert files.as_json(told) == text
    assert refused >= 2


@pytest.mark.parametrize("kind", made_every.FEW)
def test_an_array_that_is_missing_or_of_other_numbers_or_shape_is_named(tmp_path: Path, kind: str) -> None:
    whole = files.as_npz(read(tmp_path, files.as_npz(made_every.every()[kind]), ".npz"))
    arrays = resealed.arrays_of(whole)
    for name in arrays.keys() - {"meta"}:
        values = arrays[name]
        others = {
            "is missing": None,
            "holds": values.astype("U8"),
            "axes": np.stack([values, values], axis=-1),
        }
        for wrong, changed in others.items():
            other = {key: each for key, each in arrays.items() if key != name}
            content = resealed.archive(other if changed is None else {**other, name: changed})
            told = asked(tmp_path, content, ".npz")
            if not isinstance(told, str):
                # a column of what stands in the document, or what follows from other arrays
                assert files.as_npz(told) == whole
            elif name != "keys" or wrong != "axes":  # the axes of `keys` are those of what lies over them
                assert f"'{name}' {wrong}" in told or (wrong == "axes" and f"'{name}' is " in told), told


SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


@cache
def described(kind: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_says_what_it_means(kind: str) -> None:
    whole = json_schema(kind)
    for name, each in {kind: whole, **whole["$defs"]}.items():
        for key, schema in each.get("properties", {}).items():
            axes, _, said = schema["description"].rpartition(" x ")  # an array has its axes before
            assert len(said.split()) >= 4, f"{key} of {name}: {axes}{said}"


def test_what_is_said_of_a_key_is_what_its_class_says_of_it() -> None:
    keys = json_schema("ablation")["$defs"]["HeadEffect"]["properties"]
    assert keys["predicted"]["description"] == "`predicted` is the change that the gradient foretells."
    assert keys["kl"]["description"].endswith("1 less the cosine to what it was."), (
        "the sentence behind it names another key"
    )
    assert "`controls` heads of the same layer" in keys["below"]["description"]
    assert json_schema("finding")["properties"]["weights"]["description"].startswith(
        "layer x head: `weights[i, j]` is the score of "
    )


@pytest.mark.parametrize("kind", made_every.every())
def test_a_file_says_its_answer_first_and_is_what_the_schema_of_its_kind_says(kind: str) -> None:
    document = json.loads(files.as_json(made_every.every()[kind]))
    assert list(document)[:2] == ["schema", "answer"]
    assert isinstance(document["answer"], str)
    assert len(document["answer"].split()) >= 3
    assert "\n" not in document["answer"]
    own = document["schema"].removeprefix("attnscope.").partition("/")[0]
    validator = Draft202012Validator(json.loads((SCHEMAS / f"{own}.json").read_text("utf-8")))
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not any(described(other).is_valid(document) for other in KINDS if other != own)
    del document["answer"]
    assert not described(own).is_valid(document)


@pytest.mark.parametrize(
    ("way", "wrong"),
    [
        (("layer",), "three"),
        (("weights", 0), 0.5),
        (("allowed", 0, 0), 0.5),
        (("certificate", "verdict"), "sure"),
        (("query_tokens", 0, "text"), 3),
        (("provenance", "token_ids"), ["x"]),
    ],
)
def test_what_is_wrong_in_a_file_is_wrong_by_its_schema(way: tuple[Any, ...], wrong: Any) -> None:
    document = json.loads(files.as_json(made_stored.MADE["head"]()))
    validator = Draft202012Validator(json_schema("head"))
    changed, missing = deepcopy(document), deepcopy(document)
    inner: Any = changed
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = wrong
    del missing[way[0]]
    assert validator.is_valid(document)
    assert not validator.is_valid(changed)
    assert not validator.is_valid(missing)
