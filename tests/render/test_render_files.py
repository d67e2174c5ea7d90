"""What other programs read: strict, exact, complete; routes and returned weights in words and files."""

import csv
import errno
import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import made_results as made
import numpy as np
import pytest
from golden_text import body, drawn, header, printed

from attnscope.errors import InputError
from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.kit.words import feature_words
from attnscope.render.saving import write
from attnscope.render.sheets import Focus
from attnscope.results import HeadAttention, HeadWeights, Overview, Verdict, Verification
from attnscope.tokens import Token, Tokens

Result = HeadAttention | Overview | Verification
RESULTS: dict[str, Callable[[], Result]] = {
    "attnscope.head/2": lambda: made.head(made.AWKWARD, made.DOOR[:4], empty=[1], verdict=Verdict.FAILED),
    "attnscope.overview/2": lambda: made.overview(2, 3, made.AWKWARD, verdicts={(1, 2): Verdict.FAILED}),
    "attnscope.verification/2": lambda: made.verification(2, 3, {(1, 2): Verdict.FAILED}),
}


def strict(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def table(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# ")]
    return list(csv.DictReader(lines))


def read(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("schema", RESULTS)
def test_every_format_carries_schema_verdict_and_provenance(schema: str) -> None:
    result = RESULTS[schema]()
    document = strict(as_json(result))
    meta = strict(str(read(as_npz(result))["meta"]))
    for told in (document, meta):
        assert told["schema"] == schema
        assert told["verdict"] == "failed"
        assert told["provenance"]["requested"] == told["provenance"]["model"] == "bert-base-uncased"
    text = as_csv(result)
    for line in (f"# schema: {schema}", "# verdict: failed", "# kernel: eager", "# dtype: float32"):
        assert f"{line}\n" in text


def test_json_holds_every_stage_by_axis_words_with_null_for_what_is_no_number() -> None:
    result = made.head(made.AWKWARD, made.DOOR[:4], empty=[1])
    document = strict(as_json(result))
    assert (document["layer"], document["head"], document["kind"]) == (3, 11, "cross")
    for name in ("weights", "scores", "scaled", "q", "k", "v", "output"):
        values = np.array(document[name], float)
        np.testing.assert_array_equal(values, getattr(result, name), err_msg=name)
    assert document["weights"][1] == [None] * 4
    assert document["allowed"][1] == [False] * 4


def test_json_escapes_whatever_steers_a_terminal_and_stays_equal() -> None:
    hostile = [
        "a\u202eb",
        "\u2066x\u2069",
        "\x9b31m",
        "\U000e0041\U000e007f",
        "\ufeff",
        "\u2028",
        "\x7f",
        "\U000f0000",
    ]
    harmless = ["日本語", "café", "👩\u200d👧", "❤\ufe0f", "می\u200cخواهم"]
    text = as_json(made.head([*hostile, *harmless]))
    assert all(each.isprintable() or each in "\n\u200d\u200c" for each in text)
    assert all(each in text for each in harmless)
    assert r"a\u202eb" in text
    assert r"\udb40\udc41" in text  # JSON has no escape for a character beyond U+FFFF but its two halves
    assert [token["text"] for token in strict(text)["query_tokens"]] == [*hostile, *harmless]


def test_json_keeps_a_result_with_infinite_errors_strict() -> None:
    certificate = made.certificate(Verdict.FAILED, weight_error=float("inf"))
    strict(as_json(made.head(certificate=certificate)))
    assert strict(as_json(made.head(verdict=Verdict.UNCERTIFIED)))["certificate"]["weight_error"] is None


def test_csv_of_a_head_has_a_row_per_pair_with_exact_floats() -> None:
    result = made.head(made.AWKWARD, made.DOOR[:4], empty=[1])
    rows = table(as_csv(result))
    assert len(rows) == 13 * 4
    assert list(rows[0]) == [
        "query",
        "query_token",
        "key",
        "key_token",
        "allowed",
        "score",
        "scaled",
        "weight",
    ]
    for row in rows:
        query, key = int(row["query"]), int(row["key"])
        assert row["query_token"] == result.query_tokens.labels[query]
        for column, stage in (
            ("score", result.scores),
            ("scaled", result.scaled),
            ("weight", result.weights),
        ):
            value = float(stage[query, key])
            assert row[column] == ("" if np.isnan(value) else repr(value))
        assert row["allowed"] == str(int(query != 1))


def test_csv_comments_cannot_be_broken_by_a_line_break_in_the_text() -> None:
    result = made.head(["a\nb", "c"])
    assert all(line.startswith("# ") for line in as_csv(result).split("query,query_token")[0].splitlines())


def test_csv_of_an_overview_leaves_the_link_of_a_head_without_keys_empty() -> None:
    result = made.overview(1, 1)
    result.strongest[0, 0] = -1
    row = table(as_csv(result))[0]
    assert (row["query"], row["query_token"], row["key"]) == ("", "", "")
    assert strict(as_json(result))["results"][0]["query"] is None


def test_npz_gives_the_arrays_back_bit_by_bit_without_pickles() -> None:
    result = made.head(made.AWKWARD, made.DOOR[:4], empty=[1])
    arrays = read(as_npz(result))
    for name in ("weights", "scores", "scaled", "q", "k", "v", "output", "allowed"):
        written = getattr(result, name)
        assert arrays[name].dtype == written.dtype
        assert arrays[name].tobytes() == written.tobytes()


@pytest.mark.parametrize("place", ["new/folder/a.json", "new/../a.json"])
def test_of_a_file_that_cannot_be_written_not_even_its_folders_stay(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(part: Path, target: Path) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="File too large"):
        write(tmp_path / place, b"{}")
    assert list(tmp_path.iterdir()) == []


def returned(columns: int | None = None, scale: float = 1.0) -> HeadWeights:
    """A head of which there are weights alone; `columns` that are no tokens, rows that sum to `scale`."""
    whole = made.head(verdict=Verdict.UNCERTIFIED)
    keys = whole.key_tokens
    if columns is not None:
        keys = Tokens((), tuple(Token(-1, str(i), str(i), None, None) for i in range(columns)))
    weights = whole.weights[:, : len(keys)] / whole.weights[:, : len(keys)].sum(1, keepdims=True) * scale
    own = {name: getattr(whole, name) for name in HeadWeights.__dataclass_fields__}
    notes = () if columns is None else ("its keys are not the tokens: columns are numbered",)
    return HeadWeights(
        **own | {"weights": weights, "allowed": weights >= 0, "key_tokens": keys, "notes": notes}
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"scale": 1.0}, "scale 1 (usual: 1/√8 = .35)"),
        ({"scale": 8**-0.5}, None),
        ({"terms": {"relative position": np.zeros((13, 13))}}, "relative position added"),
        ({"block": 3, "blocks": 16}, "block 3 of 16 (--block)"),
        ({"block": 0, "blocks": 1}, None),
        ({"v": np.zeros((13, 5)), "output": np.zeros((13, 5))}, "keys of 8 dimensions, values of 5"),
        ({"window": 5}, "window of 4 tokens to either side"),
        ({"window": 5, "allowed": np.tri(13, dtype=bool)}, "window of 5 tokens"),
        ({"notes": ("odd",)}, "odd"),
        ({"key_heads": 4, "key_head": 3}, "reads key head 3 (shared by heads 9-11)"),
    ],
)
def test_the_header_says_what_is_special_and_nothing_else(changed, told) -> None:
    plain = made.head(v=np.zeros((13, 8)), output=np.zeros((13, 8)))
    assert feature_words(plain) == []
    assert feature_words(replace(plain, **changed)) == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("sharing", "told"),
    [
        ((3, 3), ["every 3 heads share a key head: 0-2, 3-5, ..."]),
        ((1, 2), ["every 2 heads share a key head: 0-1, 2-3, ... in some layers"]),
        ((2, 4), ["heads share key heads, 2 to 4 each"]),
        ((1, 1), []),
        ((), []),
    ],
)
def test_an_overview_says_which_heads_share_a_key_head(sharing, told) -> None:
    assert feature_words(replace(made.overview(2, 6), sharing=sharing)) == told


def test_returned_weights_are_shown_like_any_with_what_their_rows_really_sum_to() -> None:
    text = printed(body(returned(scale=0.5), 100), 100)
    assert "rows sum to .50" in text
    assert "rows sum to 1" in printed(body(returned(), 100), 100)
    own, whole = returned(), made.head()
    assert printed(drawn(own, 100), 100) == printed(drawn(whole, 100), 100)
    bars = printed(body(own, 100, Focus(queries=(3,))), 100)
    assert "scaled" not in bars
    assert "█" in bars


def test_returned_columns_that_are_no_tokens_are_numbers() -> None:
    shown = returned(columns=9)
    text = printed(header(shown), 100) + printed(body(shown, 100), 100)
    assert "its keys are not the tokens: columns are numbered" in text
    assert "cat" not in text.split("key →")[1].splitlines()[2]
    figure = figure_of(shown)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list(map(str, range(9)))
    assert figure_bytes(figure, "png").startswith(b"\x89PNG")


def test_files_of_returned_weights_have_nulls_for_what_was_not_seen() -> None:
    document = json.loads(files.as_json(returned()))
    assert document["schema"] == "attnscope.head/2"
    missing = ("q", "k", "v", "scores", "scaled", "output", "terms", "scale", "key_head", "added")
    assert [document[name] for name in missing] == [None] * len(missing)
    assert document["verdict"] == "uncertified"
    assert document.keys() == json.loads(files.as_json(made.head())).keys()
    assert "weight" in files.as_csv(returned())
    with np.load(io.BytesIO(files.as_npz(returned()))) as archive:
        assert sorted(archive) == ["allowed", "meta", "weights"]
