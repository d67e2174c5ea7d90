"""What reaches a token from a picture, drawn as maps of its patches."""

from dataclasses import replace

import made_flow
import numpy as np
import pytest

from attnscope.model.media.patches import position_token
from attnscope.render.flow.figure import flow_figure
from attnscope.render.flow.maps import laid_out, patches_of
from attnscope.results import Flow
from attnscope.tokens import Patches, Tokens

ROWS, COLUMNS = 3, 4


def of_picture(patches: Patches) -> Flow:
    """Thirteen positions: [CLS] first, then twelve patches."""
    names = ["[CLS]", *(f"r{i // COLUMNS}c{i % COLUMNS}" for i in range(ROWS * COLUMNS))]
    items = tuple(position_token(name, special=name == "[CLS]") for name in names)
    found = made_flow.flow(answer="")
    return replace(found, tokens=Tokens((), items, (patches,)), notes=("over square.png",))


def test_every_method_is_a_map_of_the_picture_beside_the_effects() -> None:
    result = of_picture(Patches(1, ROWS, COLUMNS))
    figure = flow_figure(result)
    panels = figure.get_axes()
    assert [axes.get_title() for axes in panels[:-2]] == list(result.methods)
    drawn = panels[1].collections[0].get_array().reshape(ROWS, COLUMNS)
    assert np.ma.filled(drawn, np.nan) == pytest.approx(result.rollout[-1][1:].reshape(ROWS, COLUMNS))
    effects = panels[-2].collections[0].get_array().reshape(ROWS, COLUMNS)
    assert result.ablated is not None
    assert float(effects[2, 2]) == pytest.approx(result.ablated.effects[1 + 2 * COLUMNS + 2])
    assert effects.mask[1, 3], "the query itself was not replaced"
    words = " ".join(text.get_text() for text in figure.texts)
    assert "over square.png" in words
    assert "shares of [CLS] attention" in words


def test_patches_stand_where_their_positions_say_and_one_without_stays_empty() -> None:
    places = (5, 4, 3, 2, 1, -1, 6, 7, 8, 9, 10, 11)
    found = laid_out(Patches(5, ROWS, COLUMNS, places), np.arange(13.0))
    assert found[0].tolist() == [5, 4, 3, 2]
    assert np.isnan(found[1, 1])
    assert found[2, 3] == 11


def test_tokens_of_a_text_are_rows_and_no_map() -> None:
    assert patches_of(made_flow.flow()) is None
    assert patches_of(of_picture(Patches(1, ROWS, COLUMNS))) is not None
