"""What must hold of any input at all, of the functions that stand where input comes in."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_

from attnscope.errors import InputError, one_line
from attnscope.printable import printable
from attnscope.results import load
from attnscope.tokens import Token, Tokens
from attnscope.verbs.sdpa.given import typed

from .oracle import RAW

CHARACTERS = any_.characters(min_codepoint=1, max_codepoint=0x10FFFF)
TEXTS = any_.text(CHARACTERS | any_.sampled_from("\x1b\x9b\u202e\U000e0041\udc80 \t\n0123456789-,;.e"))
JSON = any_.recursive(
    any_.none() | any_.booleans() | any_.integers() | any_.floats() | TEXTS,
    lambda inner: any_.lists(inner, max_size=4) | any_.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
often = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@often
@given(TEXTS)
def test_printable_leaves_nothing_that_steers_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not RAW.search(shown)
    assert "\n" not in shown
    assert printable(shown) == shown
    shown.encode()


@often
@given(TEXTS)
def test_a_message_of_another_library_is_one_line(text: str) -> None:
    line = one_line(ValueError(text))
    assert len(line.splitlines()) <= 1
    assert len(line) <= 200


@often
@given(
    TEXTS
    | any_.lists(any_.lists(any_.floats()), max_size=4).map(
        lambda rows: "; ".join(",".join(map(str, row)) for row in rows)
    )
)
def test_typed_arrays_are_finite_and_even_or_refused(text: str) -> None:
    with suppress(InputError):
        values = typed(text, "--q").values
        assert values.ndim == 2
        assert all(math.isfinite(value) for value in values.flat)


@often
@given(any_.lists(TEXTS, min_size=1, max_size=6), TEXTS)
def test_naming_a_token_finds_one_or_is_refused(names: list[str], wanted: str) -> None:
    items = tuple(Token(number, name, name, None, number) for number, name in enumerate(names))
    tokens = Tokens((" ".join(names),), items)
    with suppress(InputError):
        assert 0 <= tokens.position(wanted) < len(names)
    for label in tokens.labels:
        assert not RAW.search(label)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Path]:
    file = tmp_path_factory.mktemp("stored") / "result.json"

    def put(content: bytes) -> Path:
        file.write_bytes(content)
        return file

    return put


@often
@given(
    document=JSON,
    schema=any_.sampled_from(["head", "overview", "projection", "report", "picture", "worked", "x"]),
)
def test_a_file_that_is_no_result_is_refused(
    stored: Callable[[bytes], Path], document: Any, schema: str
) -> None:
    given_ = {**document, "schema": f"attnscope.{schema}/1"} if isinstance(document, dict) else document
    with pytest.raises(InputError) as refused:
        load(stored(json.dumps(given_).encode()))
    assert not RAW.search(str(refused.value))
    assert "\n" not in str(refused.value)


@often
@given(content=any_.binary(max_size=300), start=any_.sampled_from([b"", b"PK\x03\x04", b"{", b"\x89PNG"]))
def test_bytes_that_are_no_result_are_refused(
    stored: Callable[[bytes], Path], content: bytes, start: bytes
) -> None:
    with pytest.raises(InputError):
        load(stored(start + content))
