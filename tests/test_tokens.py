"""Labels, look-up by name or position, and what of a text may reach a terminal."""

import pytest

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.tokens import Token, Tokens


def tokens_of(text: str, *pieces: tuple[str, str], unknown: tuple[int, ...] = ()) -> Tokens:
    """`text` cut at the given (vocabulary piece, exact text) pairs; a word starts where a blank stands."""
    items, end, word = [], 0, -1
    for i, (piece, exact) in enumerate(pieces):
        start = text.index(exact, end)
        word += start > end or i == 0 or exact.startswith(" ")
        end = start + len(exact)
        items.append(Token(10 + i, piece, exact, (start, end), word, unknown=i in unknown))
    return Tokens((text,), tuple(items))


@pytest.fixture
def door() -> Tokens:
    """Word pieces between two special tokens: 'the' stands twice, once with a capital."""
    inner = tokens_of(
        "The closing the door",
        ("The", "The"),
        ("clos", "clos"),
        ("##ing", "ing"),
        ("the", "the"),
        ("door", "door"),
    )
    start = Token(1, "[CLS]", "", None, None, special=True)
    end = Token(2, "[SEP]", "", None, None, special=True)
    return Tokens(inner.texts, (start, *inner.items, end))


def test_a_name_that_stands_once_is_its_own_label_and_a_repeated_one_gets_its_position():
    text = tokens_of("a cat a", ("a", "a"), ("cat", "cat"), ("a", "a"))
    assert text.names == ("a", "cat", "a")
    assert text.labels == ("a@0", "cat", "a@2")


def test_labels_of_special_and_continued_pieces_keep_the_spelling_of_the_vocabulary(door):
    assert door.labels == ("[CLS]", "The", "clos", "##ing", "the", "door", "[SEP]")


def test_labels_of_byte_level_pieces_are_cut_from_the_text_and_not_from_the_piece():
    text = tokens_of("café 日", ("cafÃ©", "café"), ("ĠæĹ¥", " 日"))
    assert text.labels == ("café", "日")


@pytest.mark.parametrize(
    ("exact", "shown"),
    [(" ", "␣"), ("\n\n", "↵↵"), ("\t", "⇥"), ("\r", "␍"), ("\u3000", "␣"), ("", "<0x0A>")],
)
def test_a_token_of_blanks_shows_visible_blanks_and_an_empty_one_its_piece(exact, shown):
    assert Token(1, "<0x0A>", exact, (0, len(exact)), 0).name == shown


@pytest.mark.parametrize("blank", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_blank_that_steers_a_terminal_is_escaped_also_when_it_is_the_whole_token(blank):
    assert blank.isspace()
    name = Token(1, "piece", blank, (0, 1), 0).name
    assert name.startswith("\\")
    assert name.isascii()
    assert name.isprintable()


def test_an_unknown_token_is_called_by_its_piece_and_listed_by_its_text():
    text = tokens_of("a 💥 b", ("a", "a"), ("[UNK]", "💥"), ("b", "b"), unknown=(1,))
    assert text.names == ("a", "[UNK]", "b")
    assert text.unknown == ("💥",)
    assert text.position("💥") == 1
    assert text.position("[UNK]") == 1


def test_a_pair_has_both_texts_and_pieces_of_words_of_the_second_are_found():
    first, second = "a cat", "the singing"
    items = (
        Token(1, "a", "a", (0, 1), 0),
        Token(2, "cat", "cat", (2, 5), 1),
        Token(3, "the", "the", (0, 3), 0, part=1),
        Token(4, "sing", "sing", (4, 8), 1, part=1),
        Token(5, "##ing", "ing", (8, 11), 1, part=1),
    )
    pair = Tokens((first, second), items)
    assert pair.sentence == "a cat | the singing"
    assert len(pair) == 5
    assert pair.ids == (1, 2, 3, 4, 5)
    assert pair.span("singing").positions == (3, 4)
    with pytest.raises(InputError, match=r"'3-4 singing' is 2 tokens, 3 sing, 4 ##ing: choose one of these$"):
        pair.position("singing")


@pytest.mark.parametrize(
    ("wanted", "position"),
    [
        ("0", 0),
        ("6", 6),
        ("-1", 6),
        ("-7", 0),
        ("door", 5),
        ("DOOR", 5),  # no token is spelled so: case is ignored then
        ("The", 1),  # the exact spelling wins over the same word in another case
        ("the", 4),
        ("ing", 3),  # the text of a piece
        ("##ing", 3),  # its spelling in the vocabulary
        ("[SEP]", 6),
        ("door@5", 5),
    ],
)
def test_a_token_is_found_by_position_text_piece_or_label(door, wanted, position):
    assert door.position(wanted) == position


def test_a_repeated_token_is_found_by_its_label_and_refused_by_its_text():
    text = tokens_of("a cat a", ("a", "a"), ("cat", "cat"), ("a", "a"))
    assert text.position("a@2") == 2
    assert text.position("a@0") == 0
    with pytest.raises(InputError, match=r"token 'a' stands 2 times: choose one of a@0, a@2$"):
        text.position("a")
    with pytest.raises(InputError, match=r"no token 'a@1' in the input: 'a' stands at 0, 2$"):
        text.position("a@1")


def test_a_text_in_neither_case_of_two_tokens_is_ambiguous(door):
    with pytest.raises(InputError, match="'THE' stands 2 times: choose one of The, the"):
        door.position("THE")


def test_a_word_in_pieces_is_refused_with_its_pieces_where_one_token_is_meant(door):
    with pytest.raises(InputError, match=r"'2-3 closing' is 2 tokens, 2 clos, 3 ##ing: choose one of these$"):
        door.position("Closing")


def test_a_number_that_stands_in_the_text_is_a_word_of_it_and_a_position_where_it_does_not():
    text = tokens_of("in 1999 it 1", ("in", "in"), ("1999", "1999"), ("it", "it"), ("1", "1"))
    assert text.position("1999") == 1
    assert text.position("1") == 3
    assert [text.position(named) for named in ("2", "@1", "pos:1", 1)] == [2, 1, 1, 1]
    with pytest.raises(InputError, match=r"no token 2000 in the input: positions 0-3$"):
        text.position("2000")


def test_an_at_sign_and_a_number_are_a_position_whatever_tokens_are_called():
    text = tokens_of("1 0 @2", ("1", "1"), ("0", "0"), ("@2", "@2"))
    assert [text.position(f"@{i}") for i in (0, 1)] == [0, 1]
    assert text.position("@-1") == 2
    assert text.position("@2") == 2
    named = tokens_of("@1 b", ("@1", "@1"), ("b", "b"))
    assert named.position("@1") == 0  # a token of that very text comes first
    with pytest.raises(InputError, match=r"no token 3 in the input: positions 0-2$"):
        text.position("@3")


@pytest.mark.parametrize("number", ["7", "-8", "99"])
def test_a_position_beyond_the_input_is_refused_with_the_positions_there_are(door, number):
    with pytest.raises(InputError, match=f"no token {number} in the input: positions 0-6$"):
        door.position(number)


@pytest.mark.parametrize("wanted", ["window", "--5", "-", ""])
def test_what_is_not_in_the_input_is_refused_with_all_tokens(door, wanted):
    with pytest.raises(
        InputError, match=r"no token .* in the input: tokens are 0 \[CLS\], 1 The, .* 6 \[SEP\]$"
    ):
        door.position(wanted)


def test_a_refusal_holds_no_control_character_of_what_was_asked_for(door):
    with pytest.raises(InputError) as refusal:
        door.position("\x1b[31m")
    assert "\x1b" not in str(refusal.value)
    assert r"\x1b[31m" in str(refusal.value)


def test_tokens_without_a_source_text_are_found_and_refused_all_the_same():
    pieces = Tokens((), (Token(1, "ab", "ab", (0, 2), 0), Token(2, "##c", "##c", (2, 3), 0)))
    assert pieces.position("##c") == 1
    with pytest.raises(
        InputError, match="no token 'abd' in the input: the nearest is 0 ab; tokens are 0 ab, 1 ##c"
    ):
        pieces.position("abd")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of the escape sequence
        ("\x1b]8;;http://x\x07", r"\x1b]8;;http://x\x07"),
        ("a\u202eb", r"a\u202eb"),  # writes what follows from right to left
        ("\u2066x\u2069", r"\u2066x\u2069"),
        ("\ufeff", r"\ufeff"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\ue000", r"\ue000"),
        ("\x7f", r"\x7f"),
        ("a\nb", "a↵b"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_its_escape(raw, shown):
    assert printable(raw) == shown


@pytest.mark.parametrize(
    "harmless", ["👩\u200d👩\u200d👧", "❤\ufe0f", "e\u0301", "می\u200cخواهم", "日本語", "[/b] $x$", "👍🏽"]
)
def test_emoji_combining_characters_and_joiners_of_scripts_stay_as_they_are(harmless):
    assert printable(harmless) == harmless
