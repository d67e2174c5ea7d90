"""Maps of words, and without special tokens, as they are shown: what the points are is said everywhere."""

import csv
import io

import made_results as made
import made_stored
import numpy as np
import pytest
from matplotlib.text import Text
from rich.cells import cell_len
from written_numbers import number_of

from attnscope.analysis.heads.view import viewed
from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import Focus, focus_on
from attnscope.render.terminal.sheet import written
from attnscope.results import Projection, Special


def mapped(special: Special = Special.HIDE) -> Projection:
    return made_stored.projection_of_words(special)


def said(
    result: Projection, *queries: int, key: int | None = None, width: int = 80, verbose: bool = False
) -> str:
    return written(result, Focus(queries=queries, key=key, verbose=verbose), width)


def drawn(result: Projection, *queries: int) -> str:
    figure = figure_of(result, Focus(queries=queries))
    return " ".join(each.get_text() for each in figure.findobj(Text)).replace("\n", " ")


@pytest.mark.parametrize("width", [40, 80])
def test_the_terminal_says_what_the_points_are_and_names_words(width: int) -> None:
    result = mapped()
    text = said(result, 2, width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    flat = " ".join(text.split())
    assert "by words · special tokens hidden" in flat
    assert "points are words" not in flat
    full = said(result, 2, width=width, verbose=True)
    assert max(map(cell_len, full.splitlines())) <= width
    full = " ".join(full.split())
    assert "points are words: mean vectors and mean scores of their pieces" in full
    assert "special tokens left out: they hold the rest of each row" in full
    assert "the weights by tokens" in full
    rest = 1 - result.weights[2].sum()
    assert f"special tokens take {rest:.2f}".replace("0.", ".") in flat
    best = int(result.ranked_keys(2)[0])
    lines = text.replace("−", "-").splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("key ") and "weight" in line)
    row = lines[heading + 1].split()
    assert int(row[0]) == result.key_tokens.positions[best]
    assert float(row[-3]) == pytest.approx(result.weights[2, best], abs=5.1e-4)
    assert number_of(row[-2]) == pytest.approx(result.scaled[2, best], abs=5.1e-3)


def test_divided_rows_lack_nothing() -> None:
    result = mapped(Special.RENORMALISE)
    text, full = (" ".join(said(result, 2, verbose=each).split()) for each in (False, True))
    assert "by words · rows without special tokens" in text
    assert "special tokens left out, rows divided by what remains" in full
    assert "tokens take" not in text + full


def test_the_picture_says_so_and_has_a_label_for_every_word() -> None:
    result = mapped()
    text = drawn(result, 1)
    assert "t-SNE map of L3 H11 by words" in text
    assert "by words · special tokens hidden" in text
    for name in result.query_tokens.names:
        assert name in text
    assert "[CLS]" not in text


def test_a_map_of_all_tokens_says_nothing_of_it() -> None:
    plain = made.projection()
    assert "points" not in said(plain, 2, verbose=True)
    assert "by words" not in said(plain, 2) + drawn(plain, 2)
    assert "special tokens" not in drawn(plain, 2)


def test_a_query_with_nothing_left_says_so() -> None:
    head = made.head()
    head.weights[4] = np.eye(13)[0]
    view = viewed(head, special=Special.RENORMALISE)
    places = {
        "queries": np.eye(11, 2),
        "keys": np.eye(11, 2),
        "distance": made.projection().distance[1:-1, 1:-1],
    }
    result = made.projection(head, view=view, view_scaled=head.scaled[1:-1, 1:-1], **places)
    assert "has nothing left" in said(result, 3)
    assert "1 query with nothing left" in " ".join(said(result).split())
    assert "has nothing left" in drawn(result, 3)
    assert "masked" not in said(result, 3, 4, key=2)


def test_a_query_is_named_by_its_word() -> None:
    result = mapped()
    name = result.query_tokens.labels[2]
    assert focus_on(result, query=name).queries == (2,)


def test_the_rows_of_the_csv_are_words_at_their_positions() -> None:
    result = mapped()
    text = as_csv(result)
    assert "# points: points are words" in text
    rows = list(csv.DictReader(io.StringIO("".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("#")
    ))))  # fmt: skip
    assert len(rows) == len(result.queries) + len(result.keys)
    assert [int(row["position"]) for row in rows[: len(result.queries)]] == list(
        result.query_tokens.positions
    )


def test_the_line_of_a_map_says_how_many_words_it_has() -> None:
    result = mapped()
    assert f"by words · encoder self-attention · {len(result.queries)} queries" in repr(result)
