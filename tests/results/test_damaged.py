"""Whatever is wrong with a file that is to be read is one line, and nothing in it is ever run."""

import io
import json
import pickle
import random
import zipfile
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import made_results as made
import made_stored
import numpy as np
import pytest
import resealed

from attnscope.errors import CertificateError, InputError
from attnscope.render import files
from attnscope.results import load

HEAD = json.loads(files.as_json(made.head(made.DOOR[:5])))
ARRAYS = files.as_npz(made.head(made.DOOR[:5]))


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def refused(folder: Path, content: bytes | dict, name: str = "x.json") -> str:
    path = folder / name
    whole = content if isinstance(content, bytes) else json.dumps(resealed.document(content)).encode()
    path.write_bytes(whole)
    return refusal(path)


def archive(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def changed(**arrays: np.ndarray) -> bytes:
    """The npz of a head with some of its arrays replaced."""
    return resealed.archive(resealed.arrays_of(ARRAYS) | arrays)


def test_what_is_no_file_says_so(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "absent.npz")
    assert "is a folder" in refusal(tmp_path)
    assert "is empty" in refused(tmp_path, b"", "x.npz")


def test_a_name_that_steers_a_terminal_is_shown_harmless() -> None:
    with pytest.raises(InputError, match=r"\\x1b"):
        load("\x1b[31m.json")
    with pytest.raises(InputError):
        load("nul\0.json")


def test_a_file_that_cannot_be_read_again_says_which_can(tmp_path: Path) -> None:
    table = files.as_csv(made.head()).encode()
    for content, name in ((table, "x.csv"), (table, "x.json"), (b"\x89PNG\r\n", "x.png"), (b"%PDF-1", "x")):
        assert "pictures and CSV cannot be read again" in refused(tmp_path, content, name)


def test_what_attnscope_did_not_write_says_so(tmp_path: Path) -> None:
    others = (b"{}", b"[1, 2]", b'{"schema": 3}', b'{"schema": "other/1"}', b"hello", b"\x00\x01\xff", b"3")
    for content in (*others, archive(a=np.ones(3)), archive(meta=np.ones(3)), archive(meta=np.array("{}"))):
        assert "is no result of attnscope" in refused(tmp_path, content)


def test_a_newer_schema_says_so_and_an_unknown_one_lists_what_there_is(tmp_path: Path) -> None:
    newer = refused(tmp_path, HEAD | {"schema": "attnscope.head/3"})
    assert (
        "was written by a newer attnscope: it is attnscope.head/3, this one reads attnscope.head/2" in newer
    )
    unknown = refused(tmp_path, HEAD | {"schema": "attnscope.dream/1"})
    assert "does not know: it reads ablation, " in unknown
    refused(tmp_path, HEAD | {"schema": "attnscope.head/0"})


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_half_a_file_is_damaged(tmp_path: Path, share: float) -> None:
    text = json.dumps(HEAD).encode()
    assert "is damaged" in refused(tmp_path, text[: int(share * len(text))])
    assert "is damaged" in refused(tmp_path, ARRAYS[: int(share * len(ARRAYS))], "x.npz")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("layer", "three", "'layer' is no whole number"),
        ("layer", True, "'layer' is no whole number"),
        ("kind", "sideways", "'kind' is none of encoder, decoder, cross"),
        ("certificate", [], "'certificate' is no object"),
        ("notes", "odd", "'notes' is no list"),
        ("weights", [[1.0, 2.0]], "'weights' is 1 x 2 where its axes are query 5 x key 5"),
        ("weights", [[1.0], [2.0, 3.0]], "'weights' is no array of numbers"),
        ("weights", "none", "'weights' holds"),
        ("allowed", HEAD["weights"], "'allowed' holds float64, not true and false"),
        ("k", [[1.0, 2.0]] * 5, "'k' is 5 x 2 where its axes are key 5 x dim 8"),
        ("query_tokens", HEAD["query_tokens"][:4], "'query_shared' is true of tokens that differ"),
        ("exact", {"inf": ["/weights/99/0"]}, "'exact' does not fit the rest"),
    ],
)
def test_a_value_that_does_not_fit_is_named(tmp_path: Path, name: str, value: Any, words: str) -> None:
    assert words in refused(tmp_path, HEAD | {name: value})


def test_arrays_of_the_wrong_kind_or_shape_are_named(tmp_path: Path) -> None:
    assert "'weights' holds int64, not numbers" in refused(tmp_path, changed(weights=np.ones((5, 5), int)))
    wrong = refused(tmp_path, changed(scores=np.ones((5, 4))))
    assert "'scores' is 5 x 4 where its axes are query 5 x key 5" in wrong


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path(tmp_path / "sprung").touch, ())

    hidden = np.array([[Trap()] * 5] * 5, dtype=object)
    assert "is damaged" in refused(tmp_path, changed(weights=hidden), "x.npz")
    refused(tmp_path, pickle.dumps(Trap()), "x.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("shape", [(9, 10**13), (-1, 5), (5, 6)])
def test_a_shape_that_is_larger_than_its_data_takes_no_memory(tmp_path: Path, shape: tuple[int, ...]) -> None:
    member = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)  # type: ignore[arg-type]
    plain = io.BytesIO(ARRAYS)
    with zipfile.ZipFile(plain, "a") as added:
        added.writestr("huge.npy", member.getvalue() + np.ones(25).tobytes())
    assert "is damaged, or holds more than plain arrays" in refused(tmp_path, plain.getvalue(), "x.npz")


def test_json_that_is_nested_too_deeply_or_has_no_numbers_is_damaged(tmp_path: Path) -> None:
    refused(tmp_path, b'{"schema": ' + b"[" * 100_000)
    assert "is damaged" in refused(tmp_path, b'{"schema": "attnscope.head/2", "scale": NaN}')


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a document, of long lists to the first three."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    return [way for key, each in inner for way in [(*place, key), *places(each, (*place, key))]]


@pytest.mark.parametrize(
    "name", ["view by words", "overview by words", "comparison of layers", "report on a head with a sink",
             "worked example", "picture", "sounds", "outline", "verification", "masked words", "terms"],
)  # fmt: skip
def test_no_change_of_one_value_ends_in_anything_but_one_line(tmp_path: Path, name: str) -> None:
    document = json.loads(files.as_json(made_stored.MADE[name]()))
    dice, ways, path = random.Random(5), places(document), tmp_path / "x.json"
    for _ in range(25):
        *way, last = dice.choice(ways)
        other = deepcopy(document)
        inner: Any = other
        for key in way:
            inner = inner[key]
        inner[last] = dice.choice([None, "x", -5, 10**30, [], {}, True, 1e308, [1], [[1.0]], 0, 99])
        path.write_text(json.dumps(resealed.document(other) if isinstance(other, dict) else other))
        with suppress(InputError, CertificateError):  # which is what is right; anything else fails here
            files.as_json(load(path))
