"""Which background colours are chosen for: said by option, variable or COLORFGBG."""

import pytest

from attnscope.errors import InputError
from attnscope.render.terminal.console import background


@pytest.mark.parametrize(
    ("wanted", "environment", "found"),
    [
        ("light", {}, "light"),
        ("DARK", {"ATTNSCOPE_THEME": "light"}, "dark"),
        (None, {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "light"),
        ("auto", {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "0;default;15"}, "light"),
        (None, {"COLORFGBG": "0;7"}, "light"),
        (None, {"COLORFGBG": "15;8"}, "dark"),
        (None, {"COLORFGBG": "default;default"}, "unknown"),
        (None, {"ATTNSCOPE_THEME": "", "COLORFGBG": ""}, "unknown"),
    ],
)
def test_what_is_said_first_counts(wanted: str | None, environment: dict[str, str], found: str) -> None:
    assert background(wanted, environment) == found


@pytest.mark.parametrize(
    ("wanted", "environment", "where"),
    [("blue", {}, "--theme"), (None, {"ATTNSCOPE_THEME": "\x1b[31m"}, "ATTNSCOPE_THEME")],
)
def test_a_theme_that_there_is_not_is_refused(
    wanted: str | None, environment: dict[str, str], where: str
) -> None:
    with pytest.raises(InputError, match=f"^{where}: no theme '.*': auto, light, dark$") as refused:
        background(wanted, environment)
    assert "\x1b" not in str(refused.value)
