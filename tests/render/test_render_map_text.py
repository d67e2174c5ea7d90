"""A map in the terminal and in files: golden text, true numbers, plain words, full precision."""

import csv
import io
import json
import math
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from golden_text import IN_FULL, assert_golden, printed
from rich.cells import cell_len
from rich.console import Group, RenderableType
from written_numbers import number_of

from attnscope.render.files import as_csv, as_json, as_npz
from attnscope.render.focus import Focus
from attnscope.render.kit import numbers
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.map import said
from attnscope.render.terminal.sheet import screen
from attnscope.results import Projection, Verdict

LONG = [f"w{i}" for i in range(70)]


def projection(result: Projection, queries: list[int], key: int | None, width: int) -> RenderableType:
    return Group(*screen(result, width, replace(IN_FULL, queries=tuple(queries), key=key)))


def shown(result: Projection, queries: list[int], key: int | None = None, width: int = 80) -> str:
    return printed(projection(result, queries, key, width), width)


def clamped() -> Projection:
    settings = {"perplexity": 5 / 3, "wanted_perplexity": 5.0, "neighbours": 2}
    nothing = {"trustworthiness": math.nan, "correlation": math.nan}
    return made.projection(
        made.head(["Yes", "no", "yes"]), settled=False, iterations=20_000, **settings, **nothing
    )


GOLDEN = {
    "map": lambda width: projection(made.projection(made.head(empty=[0])), [], None, width),
    "map_of_one_query": lambda width: projection(made.projection(), [3], None, width),
    "map_of_two_queries": lambda width: projection(
        made.projection(made.head(causal=True)), [3, 7], None, width
    ),
    "map_compared": lambda width: projection(made.projection(), [3, 7], 4, width),
    "map_of_one_query_and_a_key": lambda width: projection(made.projection(), [3], 4, width),
    "map_of_a_cross_attention": lambda width: projection(
        made.projection(made.head(made.DOOR[:4], made.AWKWARD)), [2], None, width
    ),
    "map_clamped": lambda width: projection(clamped(), [], None, width),
}  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_the_golden_text_and_no_line_is_too_wide(name: str, width: int) -> None:
    drawn: RenderableType = GOLDEN[name](width)
    text = printed(drawn, width)
    assert_golden(f"{name}.{width}", text)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text


def rows(text: str, heading: str) -> list[list[str]]:
    """The words of the rows below the headings, of which `heading` is the first."""
    lines = text.replace("−", "-").splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [heading] and "distance" in line)
    end = next(i for i, line in enumerate(lines) if i > start and not line.strip()[:1].isdigit())
    return [line.split() for line in lines[start + 1 : end]]


def test_keys_are_ranked_by_weight_over_all_keys_with_their_true_numbers() -> None:
    result = made.projection(made.head(made.DOOR, ["a", "b", "c", "d", "e"]))
    weights = result.head.weights[3]
    listed = rows(shown(result, [3]), "key")
    assert [int(row[0]) for row in listed] == sorted(range(5), key=lambda key: -weights[key])
    for key, name, weight, scaled, distance in listed:
        assert name == "abcde"[int(key)]
        assert number_of(weight) == pytest.approx(weights[int(key)], abs=5.1e-4)
        assert number_of(scaled) == pytest.approx(result.head.scaled[3, int(key)], abs=5.1e-3)
        assert number_of(distance) == pytest.approx(result.distance[3, int(key)], abs=5.1e-4)


def test_masked_keys_are_counted_and_not_ranked() -> None:
    text = shown(made.projection(made.head(causal=True)), [4])
    assert sorted(row[0] for row in rows(text, "key")) == ["0", "1", "2", "3", "4"]
    assert "8 keys masked" in text


def test_a_query_without_keys_says_so_here_and_in_the_short_table() -> None:
    result = made.projection(made.head(empty=[2]))
    assert "has no valid key" in shown(result, [2])
    assert "1 query without a valid key" in shown(result, [], width=140)
    assert "nan" not in shown(result, [2]) + shown(result, [])


def test_very_many_keys_are_cut_and_what_is_left_out_is_told() -> None:
    result = made.projection(made.head(LONG))
    text = shown(result, [5])
    assert len(rows(text, "key")) == 60
    rest = np.sort(result.head.weights[5])[:10].sum()
    assert f"10 more keys share {numbers.weight(rest)}" in text


def test_the_short_table_names_the_strongest_and_the_nearest_key_of_every_query() -> None:
    result = made.projection(made.head(made.DOOR, ["a", "b", "c", "d", "e"]))
    listed = rows(shown(result, []), "query")
    assert len(listed) == 13
    differing = 0
    for query, row in enumerate(listed):
        strongest = max(range(5), key=lambda key: result.head.weights[query, key])
        nearest = min(range(5), key=lambda key: result.distance[query, key])
        assert row[0] == str(query)
        assert row[2:4] == [str(strongest), "abcde"[strongest]]
        assert row[5:7] == [str(nearest), "abcde"[nearest]]
        assert (row[-1] == "≠") == (strongest != nearest)
        differing += strongest != nearest
    assert 0 < differing < 13
    told = " ".join(shown(result, []).split())
    assert f"for {'only ' if differing > 6 else ''}{13 - differing} of 13 queries" in told


def test_two_queries_are_compared_on_one_key_in_all_four_numbers() -> None:
    result = made.projection()
    listed = rows(shown(result, [3, 7], 4), "query")
    assert [row[0] for row in listed] == ["3", "7"]
    for query, row in zip((3, 7), listed, strict=True):
        weights = result.head.weights[query]
        rank = 1 + sum(weight > weights[4] for weight in weights)
        assert row[3:6] == [str(rank), "of", "13"]
        assert number_of(row[2]) == pytest.approx(weights[4], abs=5.1e-4)
        assert number_of(row[6]) == pytest.approx(result.head.scaled[query, 4], abs=5.1e-3)
        assert number_of(row[7]) == pytest.approx(result.distance[query, 4], abs=5.1e-4)


@pytest.mark.parametrize("nearer", [3, 7])
def test_the_words_say_whether_weight_and_distance_agree(nearer: int) -> None:
    result = made.projection()
    result.head.weights[[3, 7], 4] = 0.7, 0.2
    result.distance[[3, 7], 4] = (0.1, 0.9) if nearer == 3 else (0.9, 0.1)
    text = shown(result, [7, 3], 4)
    agreed = "“sat” gives it the larger weight, and is nearer to it"
    opposed = "“sat” gives it the larger weight, although “because” is nearer to it"
    assert (agreed if nearer == 3 else opposed) in text
    assert (opposed if nearer == 3 else agreed) not in text


def test_a_masked_key_is_compared_as_masked_and_nothing_is_concluded() -> None:
    text = shown(made.projection(made.head(causal=True)), [3, 7], 5)
    assert "masked" in text
    assert "larger weight" not in text


def test_two_rankings_stand_side_by_side_only_where_they_fit() -> None:
    result = made.projection()
    assert "query 3 sat" in shown(result, [3, 7], width=140)
    beside = next(line for line in shown(result, [3, 7], width=140).splitlines() if "query 3 sat" in line)
    assert "query 7 because" in beside
    narrow = shown(result, [3, 7], width=60).splitlines()
    assert not any("query 3 sat" in line and "query 7 because" in line for line in narrow)


def test_control_characters_and_markup_in_tokens_are_only_text() -> None:
    result = made.projection(made.head(made.AWKWARD))
    for queries, key in (([], None), ([2], None), ([2, 5], 6)):
        assert "\x1b" not in shown(result, queries, key)
    assert "[/b]" in shown(result, [])


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        (-0.98, "over all pairs near ones score high"), (-0.89, "over all pairs near ones mostly score high"),
        (-0.3, "nearness says little about the score"), (-0.05, "nearness says nothing about the score"),
        (0.19, "nearness says nothing about the score"), (0.5, "over all pairs near ones mostly score low"),
        (0.9, "over all pairs near ones score low"),
    ],
)  # fmt: skip
def test_one_phrase_says_what_nearness_means_in_this_head(correlation: float, words: str) -> None:
    assert said(made.projection(correlation=correlation))("nearness") == words
    assert words in shown(made.projection(correlation=correlation), [], width=140).lower()


def test_a_correlation_over_all_pairs_claims_nothing_of_single_queries() -> None:
    result = made.projection(correlation=-0.98)
    agreeing, asked = result.agreeing
    assert 0 < agreeing < asked / 2
    told = " ".join(shown(result, [], width=140).split())
    assert f"for only {agreeing} of 13 queries" in told
    near = replace(result, distance=-result.weights)
    assert near.agreeing == (13, 13)
    assert "for 13 of 13 queries" in " ".join(shown(near, []).split())


def test_a_map_of_a_long_text_is_one_screen_of_the_queries_that_are_surest_of_a_key() -> None:
    result = made.projection(made.head([f"w{i}" for i in range(458)]))
    text = printed(Group(*screen(result, 80)), 80)
    assert len(text.splitlines()) <= 30
    assert "443 queries less sure of a key are not shown" in text
    listed = [int(row[0]) for row in rows(text, "query")[:15]]
    surest = np.argsort(-result.weights.max(axis=1), kind="stable")[:15]
    assert listed == sorted(surest.tolist())
    assert len(rows(shown(result, []), "query")) == 458
    assert len(printed(Group(*screen(result, 80, Focus(queries=(3,)))), 80).splitlines()) <= 30


def test_what_follows_a_map_is_the_weights_of_its_query() -> None:
    result = made.projection()
    told = sheet_of(result, Focus(queries=(3,))).next
    assert told is not None
    assert told.command.endswith("--layer 3 --head 11 --query sat")
    surest = result.head.query_tokens.labels[int(result.weights.max(axis=1).argmax())]
    own = sheet_of(result).next
    assert own is not None
    assert own.command.endswith(f"--query {surest}")


def test_the_line_of_proof_names_what_of_a_map_is_not_as_it_comes() -> None:
    assert sheet_of(made.projection()).departs == ()
    changed = made.projection(seed=7, metric="euclidean")
    assert sheet_of(changed).departs == ("euclidean distance", "seed 7")


def test_a_map_that_did_not_settle_stands_out_and_the_clamp_is_told() -> None:
    result = clamped()
    assert "not settled in 20,000 iterations" in shown(result, [], width=200)
    assert "perplexity 1.67 (not 5: too few points)" in shown(result, [], width=200)
    assert "undefined" in shown(result, [])
    answer, *_ = shown(result, []).split("\n\n")
    assert "still moved after" in " ".join(answer.split())
    assert "still moved" not in shown(made.projection(), [])


def test_a_map_says_what_is_special_of_its_head() -> None:
    text = shown(made.projection(made.head(demo=True, key_heads=3, key_head=2)), [])
    assert "L3 H11 · encoder self-attention · bundled demo model" in text
    assert "reads key head 2 (shared by heads 8-11)" in " ".join(text.split())


# files


def parsed(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def archive(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def cross() -> Projection:
    return made.projection(made.head(made.AWKWARD, made.DOOR[:4], empty=[1], verdict=Verdict.FAILED))


def test_json_holds_places_pairs_figures_and_what_describes_the_head() -> None:
    result = cross()
    told = parsed(as_json(result))
    assert told["schema"] == "attnscope.projection/2"
    assert (told["layer"], told["head"], told["kind"], told["verdict"]) == (3, 11, "cross", "failed")
    np.testing.assert_array_equal(told["query_places"], result.queries)
    np.testing.assert_array_equal(told["key_places"], result.keys)
    for name in ("weights", "scores", "scaled", "q", "k"):
        np.testing.assert_array_equal(np.array(told[name], float), getattr(result.head, name), err_msg=name)
    np.testing.assert_array_equal(told["distance"], result.distance)
    assert told["weights"][1] == [None] * 4
    assert told["allowed"][1] == [False] * 4
    expected = {
        "metric": "cosine", "perplexity": 5.0, "wanted_perplexity": 5.0, "seed": 0,
        "max_iter": 100_000_000, "iterations": 1300, "settled": True, "divergence": 0.35,
        "trustworthiness": 0.924, "neighbours": 5, "correlation": -0.613,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    assert len(told["key_tokens"]) == 4
    assert told["certificate"]["verdict"] == "failed"
    assert told["provenance"]["model"] == "bert-base-uncased"


def test_json_writes_null_for_a_figure_that_is_undefined() -> None:
    told = parsed(as_json(clamped()))
    assert told["trustworthiness"] is told["correlation"] is None
    assert told["settled"] is False


def test_csv_has_a_row_per_point_with_exact_places_under_figures_and_certificate() -> None:
    result = cross()
    text = as_csv(result)
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# ")]
    listed = list(csv.DictReader(lines))
    assert list(listed[0]) == ["side", "position", "token", "x", "y"]
    assert [row["side"] for row in listed] == ["query"] * 13 + ["key"] * 4
    assert [row["token"] for row in listed[13:]] == ["[CLS]", "the", "cat", "sat"]
    places = np.array([[float(row["x"]), float(row["y"])] for row in listed])
    np.testing.assert_array_equal(places, np.concatenate([result.queries, result.keys]))
    for line in (
        "schema: attnscope.projection/2", "verdict: failed", "metric: cosine", "perplexity: 5.0", "seed: 0",
        "settled: True", "trustworthiness: 0.924", "correlation: -0.613", "kernel: eager",
    ):  # fmt: skip
        assert f"# {line}\n" in text
    assert "# certificate: ✗ FAILED" in text


def test_npz_gives_the_arrays_back_bit_by_bit() -> None:
    result = cross()
    found = archive(as_npz(result))
    assert found["query_places"].tobytes() == result.queries.tobytes()
    assert found["key_places"].tobytes() == result.keys.tobytes()
    assert found["distance"].tobytes() == result.distance.tobytes()
    for name in ("weights", "scores", "scaled", "allowed", "q", "k"):
        assert found[name].tobytes() == getattr(result.head, name).tobytes()
    assert parsed(str(found["meta"]))["trustworthiness"] == 0.924


@pytest.mark.parametrize("write", [as_json, as_csv, as_npz])
def test_the_same_map_gives_the_same_bytes(write) -> None:
    assert write(cross()) == write(cross())
    assert write(cross()) != write(made.projection())
