"""What other programs read: strict, exact, complete, and the same bytes every time."""

import csv
import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import made_results as made
import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.saving import write
from attnscope.results import HeadAttention, Overview, Verdict, Verification

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


@pytest.mark.parametrize("schema", RESULTS)
@pytest.mark.parametrize("write", [as_json, as_csv, as_npz])
def test_the_same_result_gives_the_same_bytes(schema: str, write: Callable[[Result], object]) -> None:
    assert write(RESULTS[schema]()) == write(RESULTS[schema]())


def test_json_holds_every_stage_by_axis_words_with_null_for_what_is_no_number() -> None:
    result = made.head(made.AWKWARD, made.DOOR[:4], empty=[1])
    document = strict(as_json(result))
    assert (document["layer"], document["head"], document["kind"]) == (3, 11, "cross")
    for name in ("weights", "scores", "scaled", "q", "k", "v", "output"):
        values = np.array(document[name], float)
        np.testing.assert_array_equal(values, getattr(result, name), err_msg=name)
    assert document["weights"][1] == [None] * 4
    assert document["allowed"][1] == [False] * 4


def test_json_holds_every_token_as_it_was_read() -> None:
    document = strict(as_json(made.head(made.AWKWARD)))
    token = document["query_tokens"][8]
    assert token == {
        "position": 8, "id": 1008, "piece": "\x1b[31m", "text": "\x1b[31m", "label": "\\x1b[31m",
        "span": [28, 33], "word": 8, "part": 0, "special": False, "unknown": False,
        "padding": False,
    }  # fmt: skip
    text = document["query_texts"][0]
    assert all(text[slice(*t["span"])] == t["text"] for t in document["query_tokens"] if t["span"])


def test_json_writes_characters_as_they_are_and_control_characters_escaped() -> None:
    text = as_json(made.head(made.AWKWARD))
    assert "日本語" in text
    assert "\x1b" not in text
    text.encode("utf-8")


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


def test_json_can_be_written_when_a_text_holds_half_a_character() -> None:
    as_json(made.head(["a", "\ud83d"])).encode("utf-8")


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


def test_csv_quotes_commas_and_quotation_marks() -> None:
    labels = {row["key_token"] for row in table(as_csv(made.head(made.AWKWARD)))}
    assert {"a,b", '"q"', "[/b]", "\\x1b[31m"} <= labels


def test_csv_comments_cannot_be_broken_by_a_line_break_in_the_text() -> None:
    result = made.head(["a\nb", "c"])
    assert all(line.startswith("# ") for line in as_csv(result).split("query,query_token")[0].splitlines())


def test_csv_of_an_overview_has_a_row_per_head() -> None:
    result = made.overview(2, 3, verdicts={(1, 2): Verdict.FAILED})
    rows = table(as_csv(result))
    assert [(row["layer"], row["head"]) for row in rows] == [
        (str(i), str(j)) for i in range(2) for j in range(3)
    ]
    assert rows[-1]["verdict"] == "failed"
    assert float(rows[4]["entropy"]) == result.scores["entropy"].values[1, 1]
    assert result.key_tokens.labels[int(rows[4]["key"])] == rows[4]["key_token"]


def test_csv_of_an_overview_leaves_the_link_of_a_head_without_keys_empty() -> None:
    result = made.overview(1, 1)
    result.strongest[0, 0] = -1
    row = table(as_csv(result))[0]
    assert (row["query"], row["query_token"], row["key"]) == ("", "", "")
    assert strict(as_json(result))["results"][0]["query"] is None


def test_csv_of_a_verification_has_a_row_per_layer_and_head() -> None:
    rows = table(as_csv(made.verification(2, 3, {(1, 2): Verdict.FAILED})))
    assert [(row["layer"], row["head"]) for row in rows][-1] == ("1", "2")
    assert [row["verdict"] for row in rows] == ["certified"] * 5 + ["failed"]
    assert float(rows[0]["power"]) == 1234.5


def test_npz_gives_the_arrays_back_bit_by_bit_without_pickles() -> None:
    result = made.head(made.AWKWARD, made.DOOR[:4], empty=[1])
    arrays = read(as_npz(result))
    for name in ("weights", "scores", "scaled", "q", "k", "v", "output", "allowed"):
        written = getattr(result, name)
        assert arrays[name].dtype == written.dtype
        assert arrays[name].tobytes() == written.tobytes()


def test_npz_of_an_overview_holds_the_weights_of_every_head() -> None:
    result = made.overview(2, 3)
    arrays = read(as_npz(result))
    assert arrays["weights"].shape == (2, 3, 13, 13)
    assert arrays["weights"][1, 2].tobytes() == result.weights[1][2].tobytes()
    assert arrays["verdicts"].tolist() == [["certified"] * 3] * 2


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
