"""Towers, blocks, routes and terms on the screen and in files; weights that were only returned."""

import csv
import io
import json
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from golden_text import body, drawn, header, printed

from attnscope.analysis.heads.view import viewed
from attnscope.render import files
from attnscope.render.figure import figure_bytes, figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit.words.header import feature_words
from attnscope.results import HeadWeights, Verdict
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit


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


def test_the_tower_stands_in_the_first_line() -> None:
    assert printed(header(made.head(tower="text_model"))).startswith(
        "L3 H11 · encoder self-attention of text_model · "
    )
    several = replace(made.overview(2, 3), tower="text_model")
    assert "encoder self-attention of text_model" in printed(header(several))


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


def test_terms_stand_in_the_files_of_a_head() -> None:
    bias = np.arange(169.0).reshape(13, 13)
    head = made.head(terms={"alibi": bias}, tower="text", block=1, blocks=2)
    document = json.loads(files.as_json(head))
    assert (document["added"], document["tower"], document["block"]) == (["alibi"], "text", 1)
    assert document["terms"]["alibi"][2][5] == bias[2, 5]
    lines = [line for line in files.as_csv(head).splitlines() if not line.startswith("#")]
    row = list(csv.DictReader(io.StringIO("\n".join(lines))))[2 * 13 + 5]
    assert float(row["alibi"]) == bias[2, 5]
    with np.load(io.BytesIO(files.as_npz(head))) as archive:
        assert np.array_equal(archive["terms alibi"], bias)


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


def test_returned_weights_can_be_looked_at_by_words_where_their_columns_are_tokens() -> None:
    assert viewed(returned(), by=Unit.WORD).weights == pytest.approx(
        viewed(made.head(), by=Unit.WORD).weights
    )
