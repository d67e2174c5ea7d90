"""Labels; words, spans and positions by what they are called; what of a text may reach a terminal."""

import pytest

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.spans import span_of
from attnscope.tokens import Given, Section, Token, Tokens


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


def test_a_repeated_token_has_its_position_for_a_label_and_is_found_by_it_alone():
    text = tokens_of("a cat a", ("a", "a"), ("cat", "cat"), ("a", "a"))
    assert text.names == ("a", "cat", "a")
    assert text.labels == ("a@0", "cat", "a@2")
    assert text.position("a@2") == 2
    assert text.position("a@0") == 0
    with pytest.raises(InputError, match=r"token 'a' stands 2 times: choose one of a@0, a@2$"):
        text.position("a")
    with pytest.raises(InputError, match=r"no token 'a@1' in the input: 'a' stands at 0, 2$"):
        text.position("a@1")


def test_labels_are_spelled_as_the_vocabulary_or_cut_from_the_text(door):
    assert door.labels == ("[CLS]", "The", "clos", "##ing", "the", "door", "[SEP]")
    text = tokens_of("café 日", ("cafÃ©", "café"), ("ĠæĹ¥", " 日"))
    assert text.labels == ("café", "日")
    with pytest.raises(InputError, match="'THE' stands 2 times: choose one of The, the"):
        door.position("THE")


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
        ("-1", 6),
        ("door", 5),
        ("DOOR", 5),  # no token is spelled so: case is ignored then
        ("The", 1),  # the exact spelling wins over the same word in another case
        ("the", 4),
        ("##ing", 3),  # its spelling in the vocabulary
        ("door@5", 5),
    ],
)
def test_a_token_is_found_by_position_text_piece_or_label(door, wanted, position):
    assert door.position(wanted) == position


def test_an_at_sign_and_a_number_are_a_position_whatever_tokens_are_called():
    text = tokens_of("1 0 @2", ("1", "1"), ("0", "0"), ("@2", "@2"))
    assert [text.position(f"@{i}") for i in (0, 1)] == [0, 1]
    assert text.position("@-1") == 2
    assert text.position("@2") == 2
    named = tokens_of("@1 b", ("@1", "@1"), ("b", "b"))
    assert named.position("@1") == 0  # a token of that very text comes first
    with pytest.raises(InputError, match=r"no token 3 in the input: positions 0-2$"):
        text.position("@3")


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


def cut(text: str, *pieces: str, around: bool = True) -> Tokens:
    """`text` cut at `pieces` in order (`##` continues a word), between two special tokens or not."""
    items, end = list[Token](), 0
    for i, piece in enumerate(pieces):
        exact = piece.removeprefix("##")
        start = text.index(exact, end)
        end = start + len(exact)
        items.append(Token(10 + i, piece.lower(), exact, (start, end), i))
    if around:
        items = [Token(1, "[CLS]", "", None, None, special=True), *items]
        items.append(Token(2, "[SEP]", "", None, None, special=True))
    return Tokens((text,), tuple(items))


@pytest.fixture
def story() -> Tokens:
    """0 [CLS] 1 The 2 un 3 ##lock 4 ##ed 5 door 6 , 7 the 8 door 9 in 10 in 11 ##side 12 4 13 [SEP]."""
    pieces = ("The", "un", "##lock", "##ed", "door", ",", "the", "door", "in", "in", "##side", "4")
    return cut("The unlocked door, the door in inside 4", *pieces)


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ("unlocked", (2, 3, 4)),
        ("unlocked door", (2, 3, 4, 5)),
        ("unlocked   door,", (2, 3, 4, 5, 6)),
        ("door, the", (5, 6, 7)),
        ("door@8", (8,)),
        ("door#2", (8,)),
        ("in", (9,)),  # the word, and not the piece of another one
        ("in@10", (10,)),
        ("side", (11,)),
        ("4", (12,)),  # a word of the text
        ("pos:4", (4,)),
        ("5", (5,)),
        ("-1", (13,)),
        ("4-6", (4, 5, 6)),
        ("-3--2", (11, 12)),
        ("pos:first", (0,)),
        ("pos:last", (13,)),
        ("pos:ALL", tuple(range(14))),
        ("[CLS] The unlocked", (0, 1, 2, 3, 4)),
        (-1, (13,)),
    ],
)
def test_words_spans_and_positions_are_found_by_what_they_are_called(story, wanted, places):
    assert span_of(story, wanted).positions == places


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("door", "token 'door' stands 2 times: choose one of door@5, door@8$"),
        ("door#3", "no token 'door#3' in the input: 'door' stands 2 times, #1 is the first$"),
        ("unlocked#2", "'unlocked' stands once"),
        ("the door@5", "no token 'the door@5' in the input: 'the door' stands at 7$"),
        ("nlocked", "no token 'nlocked' in the input"),
        ("6-4", "no tokens 6-4 in the input: the first of them comes after the last"),
        ("4-99", "no token 99 in the input: positions 0-13$"),
        ("pos:middle", "no position 'pos:middle': there are pos:first, pos:last, pos:all, pos:4-5$"),
    ],
)
def test_what_is_not_there_or_there_twice_is_told_with_its_positions(story, wanted, why):
    with pytest.raises(InputError, match=why):
        span_of(story, wanted)


def test_a_span_is_told_by_its_positions_and_the_text_as_it_was_written(story):
    assert span_of(story, "UNLOCKED").name == "2-4 unlocked"
    assert span_of(story, "door@8").name == "8 door"
    assert span_of(story, "pos:all").name == "0-13 [CLS] The unlocked … in inside 4 [SEP]"


@pytest.mark.parametrize(
    ("pieces", "wanted", "places"),
    [
        (("▁the", "▁un", "lock", "ed"), "unlocked", (1, 2, 3)),
        (("▁the", "▁un", "lock", "ed"), "the unlocked", (0, 1, 2, 3)),
        (("the", "un", "##lock"), "unlock", (1, 2)),
        (("<s>", "the", "door"), "<s> the", (0, 1)),
    ],
)
def test_tokens_without_places_in_a_text_are_put_together_as_their_vocabulary_spells_them(
    pieces, wanted, places
):
    items = (
        Token(i, each, each.strip("▁"), None, None, special=each == "<s>") for i, each in enumerate(pieces)
    )
    assert span_of(Tokens((), tuple(items)), wanted).positions == places


def test_a_mask_is_found_in_any_spelling_and_a_character_of_several_bytes_whole():
    items = (Token(1, "the", "the", (0, 3), 0), Token(2, "<mask>", "<mask>", (4, 10), None, special=True))
    assert span_of(Tokens(("the <mask>",), items), "[MASK]").positions == (1,)
    items = tuple(Token(i, f"<0x{i}>", "💥", (2, 3), 1) for i in range(3))
    first = Token(9, "a", "a", (0, 1), 0)
    assert span_of(Tokens(("a 💥",), (first, *items)), "a 💥").positions == (0, 1, 2, 3)


@pytest.fixture
def chat() -> Tokens:
    """0 user 1 Hi 2 assistant 3 Yes 4 user 5 it 6 user, three messages and one word more."""
    pieces = ("user", "Hi", "assistant", "Yes", "user", "it", "user")
    tokens = cut(" ".join(pieces), *pieces, around=False)
    sections = (
        Section("role", "user", 0, 2, 1),
        Section("role", "assistant", 2, 2, 1),
        Section("role", "user", 4, 3, 1),
    )
    return Tokens(tokens.texts, tokens.items, (*sections, Given("chat")))


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ("role:assistant", (2, 3)),
        ("role:user#1", (0, 1)),
        ("role:user#2", (4, 5, 6)),
        ("role:user@4", (4, 5, 6)),
        ("user@6", (6,)),
        ("assistant", (2,)),
    ],
)
def test_a_message_is_named_by_its_role_and_a_bare_word_is_a_word(chat, wanted, places) -> None:
    assert span_of(chat, wanted).positions == places


def test_a_message_is_told_by_its_role_and_not_by_all_that_it_says(chat: Tokens) -> None:
    assert span_of(chat, "role:user#2").name == "4-6 role:user#2"
    assert span_of(chat, "4-6").name == "4-6 role:user#2"
    assert span_of(chat, "4-5").name == "4-5 user it"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            "role:user",
            "'role:user' stands 2 times: choose one of role:user#1 (0-1), role:user#2",
        ),
        ("role:system", "no role 'role:system' in the input: there are role:user#1 (0-1)"),
        ("role:user#3", "no role 'role:user#3'"),
        ("role:user@1", "no role 'role:user@1'"),
        ("field:a", "no field of a template"),
    ],
)
def test_a_role_that_is_not_there_or_there_twice_lists_what_there_is(chat, wanted, said) -> None:
    with pytest.raises(InputError) as told:
        span_of(chat, wanted)
    assert said in str(told.value)


def test_a_text_that_is_no_chat_has_no_roles_and_may_hold_such_words(story: Tokens) -> None:
    with pytest.raises(InputError, match="the text is no chat: --chat reads one, --system makes one"):
        span_of(story, "role:user")
    words = cut("a role : user", "a", "role", ":", "user")
    assert span_of(words, "role : user").positions == (2, 3, 4)
