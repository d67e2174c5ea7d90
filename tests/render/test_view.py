"""Weights by words and without special tokens, as they are shown: golden text, figures, sentences."""

from dataclasses import replace

import made_reports
import made_results as made
import numpy as np
import pytest
from golden_text import assert_golden, body, printed

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import viewed
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus
from attnscope.render.kit.words.weights import special_words, weights_words
from attnscope.render.report.page import report_figure
from attnscope.render.sheets.overview import sheet as overview
from attnscope.render.sheets.report import shares, shares_remark
from attnscope.results import HeadAttention, Special, SpecialMass
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit


def cut(**changed: object) -> HeadAttention:
    """`[CLS] un ##lock ##ing doors [SEP]`, where a word is cut into three."""
    pieces = (("un", (0, 2), 0), ("##lock", (2, 6), 0), ("##ing", (6, 9), 0), ("doors", (10, 15), 1))
    text = "unlocking doors"
    inner = tuple(Token(7, piece, text[slice(*span)], span, word) for piece, span, word in pieces)
    ends = [Token(1, name, "", None, None, special=True) for name in ("[CLS]", "[SEP]")]
    tokens = Tokens((text,), (ends[0], *inner, ends[1]))
    return replace(made.head(["a"] * 6, **changed), query_tokens=tokens, key_tokens=tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("special", Special)
def test_the_terminal_shows_words(special: Special) -> None:
    view = viewed(cut(causal=True), by=Unit.WORD, special=special)
    assert_golden(f"words_{special}.80", printed(body(view, 80), 80))


def test_the_bars_of_a_word_have_no_scores() -> None:
    view = viewed(cut(), by=Unit.WORD, special=Special.RENORMALISE)
    text = printed(body(view, 80, Focus(queries=(view.query_tokens.position("unlocking"),))), 80)
    assert_golden("words_bars.80", text)
    assert "scaled" not in text


def test_a_row_with_nothing_left_says_so_in_table_bars_and_figure() -> None:
    weights = np.zeros((6, 6))
    weights[:, 0] = 1.0
    view = viewed(replace(cut(), weights=weights), by=Unit.WORD, special=Special.RENORMALISE)
    shown = printed(body(view, 80), 80)
    assert shown.count("nothing left") == 2 + 1
    assert "2 queries have nothing left" in " ".join(shown.split())
    assert "has nothing left" in printed(body(view, 80, Focus(queries=(0,))), 80)
    drawn = figure_of(view)
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts.count("nothing left") == 2
    assert any("hatched: nothing left" in text.get_text() for text in drawn.texts)


def test_a_query_that_never_had_a_key_is_still_said_to_have_none() -> None:
    view = viewed(cut(empty=[4]), by=Unit.WORD, special=Special.HIDE)
    shown = printed(body(view, 80), 80)
    assert "no valid key" in shown
    assert "nothing left" not in shown


def test_the_figure_labels_words_and_says_how_they_came_about() -> None:
    drawn = figure_of(viewed(cut(), by=Unit.WORD, special=Special.HIDE))
    assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == ["unlocking", "doors"]
    small = " ".join(text.get_text() for text in drawn.texts).replace("\n", " ")
    plain = " ".join(text.get_text() for text in figure_of(cut()).texts).replace("\n", " ")
    for phrase in ("L3 H11 by words", "by words · special tokens hidden"):
        assert phrase in small
        assert phrase not in plain


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (cut(), "rows sum to 1"),
        (cut(sink=0.5), "rows sum to less than 1: the sink takes the rest"),
        (viewed(cut(), by=Unit.WORD), "rows sum to 1"),
        (viewed(cut(), special=Special.HIDE), "rows sum to less than 1: special tokens get the rest"),
        (
            viewed(cut(sink=0.5), special=Special.HIDE),
            "rows sum to less than 1: special tokens and the sink get the rest",
        ),
        (viewed(cut(), special=Special.RENORMALISE), "special tokens left out, rows divided by what remains"),
        (viewed(made.head(["the", "cat"]), special=Special.HIDE), "rows sum to 1"),
    ],
)
def test_what_a_row_adds_up_to_is_said(view, told: str) -> None:
    assert weights_words(view)[0] == told


def test_the_mass_is_split_by_name_and_many_names_are_cut_to_the_largest() -> None:
    assert special_words(None) == ""
    assert special_words(SpecialMass(0.43, {"[CLS]": 0.031, "[SEP]": 0.399})) == (
        "special tokens get .43 of the attention: [CLS] .03, [SEP] .40"
    )
    assert special_words(SpecialMass(0.0001, {"</s>": 0.0001})) == (
        "special token </s> gets <.01 of the attention"
    )
    many = {f"<{i}>": i / 100 for i in range(1, 7)}
    assert special_words(SpecialMass(0.21, many)).endswith("<6> .06, <5> .05, <4> .04, <3> .03, ...")


def test_an_overview_says_how_it_was_made_and_how_to_open_a_head_alike() -> None:
    seen = viewed_overview(made.overview(2, 3), special=Special.RENORMALISE)
    shown = printed(body(seen, 80), 80)
    assert "special tokens left out, rows divided by what remains" in " ".join(shown.split())
    assert "1 = one token, 11 = all alike" in shown
    following = overview(seen).next
    assert following is not None
    assert "--special renormalise" in following.command
    small = " ".join(text.get_text() for text in figure_of(seen).texts).replace("\n", " ")
    assert "attention of all heads" in small


def test_a_report_lists_words_and_leaves_out_special_tokens() -> None:
    head = cut()
    view = viewed(head, by=Unit.WORD, special=Special.RENORMALISE)
    result = made_reports.report(head, 4, view=view)
    given, weights = result.contributions, head.weights[4]
    listed = {each.name: each for each in shares(result, 9)}
    assert sorted(listed) == ["1 unlocking", "4 doors"]
    assert listed["1 unlocking"].share == pytest.approx(given[1:4].sum())
    assert listed["1 unlocking"].weight == pytest.approx(weights[1:4].sum() / weights[1:5].sum())
    left_out = f"special tokens left out: weight {weights[[0, 5]].sum():.2f}".replace("0.", ".")
    assert shares_remark(result).startswith(left_out)
    assert "divided" in shares_remark(result)


def test_the_page_has_scores_by_tokens_beside_weights_by_words() -> None:
    head = cut()
    page = report_figure(made_reports.report(head, 4, view=viewed(head, by=Unit.WORD)))
    rows = [[label.get_text() for label in axes.get_yticklabels()] for axes in page.axes]
    assert list(head.query_tokens.labels) in rows
    assert ["[CLS]", "unlocking", "doors", "[SEP]"] in rows
    outlined = [patch for axes in page.axes for patch in axes.patches if patch.get_label() == "query"]
    assert [patch.get_y() for patch in outlined] == [4, 2], "the query's row, by tokens and by words"
