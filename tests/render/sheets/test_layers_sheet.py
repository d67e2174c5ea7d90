"""The answers of layers beside those of shuffled texts, and in files."""

from cases_layers import layered

from attnscope.render.sheets import sheet_of


def test_without_controls_it_is_said_that_there_are_none() -> None:
    shown = sheet_of(layered("middle", controls=0))
    assert shown.control == ""
    assert "no shuffled texts were asked for" in shown.notes
    assert not any(column.name == "control" for column in shown.every[0].table.columns)


def test_every_layer_of_every_place_is_a_row_in_files() -> None:
    result = layered("middle", "late")
    columns = {each.name: list(each.values) for each in sheet_of(result).table().columns}
    assert columns["position"] == [4] * 4 + [5] * 4
    assert columns["layer"] == [-1, 0, 1, 2] * 2
    assert columns["best"] == ["the", "the", "opened", "opened", "the", "the", "the", "opened"]
