"""How a token is named in a sentence: in quotes where it is text, so that `.` and `at` can be read."""

import pytest

from attnscope.render.sheet.said import in_sentence
from attnscope.tokens import Patches, Token, Tokens

TEXT = "It, it: [MASK] <b ز"
PIECES = ("It", ",", "it", ":", "[MASK]", "<b", "ز")


def tokens(*added: Token, **fields: object) -> Tokens:
    starts = [TEXT.index(piece) for piece in PIECES]
    items = (
        Token(i, piece, piece, (start, start + len(piece)), i)
        for i, (piece, start) in enumerate(zip(PIECES, starts, strict=True))
    )
    return Tokens((TEXT,), (*added, *items), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("position", "told"),
    [(0, "“It”"), (1, "“,”"), (2, "“it”"), (3, "“:”"), (4, "[MASK]"), (5, "“<b”"), (6, "“ز\u200e”")],
)
def test_text_stands_in_quotes_and_what_has_brackets_of_its_own_does_not(position: int, told: str) -> None:
    assert in_sentence(tokens(), position) == told


def test_where_a_token_stands_twice_its_position_follows_the_quotes() -> None:
    twice = tokens(Token(9, "it", "it", (4, 6), 9))
    assert [in_sentence(twice, i) for i in (0, 3)] == ["“it”@0", "“it”@3"]
    masks = tokens(Token(4, "[MASK]", "[MASK]", (8, 14), 4))
    assert in_sentence(masks, 0) == "[MASK]@0"


@pytest.mark.parametrize("fields", [{"special": True}, {"unknown": True}])
def test_special_tokens_and_those_that_cannot_be_spelled_are_named_as_they_are(
    fields: dict[str, bool],
) -> None:
    added = tokens(Token(9, "</s>", "", None, None, **fields))
    assert in_sentence(added, 0) == "</s>"


def test_a_patch_of_a_picture_is_no_text_beside_text_or_alone() -> None:
    patch = Token(-1, "r0c0", "r0c0", None, None)
    assert in_sentence(tokens(patch, marked=(Patches(0, 1, 1),)), 0) == "patch row 0, column 0"
    assert in_sentence(Tokens((), (patch,)), 0) == "r0c0"
