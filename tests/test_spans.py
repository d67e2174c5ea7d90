"""What a user calls tokens: words, several words, positions; what is not there or there twice is told."""

import pytest

from attnscope.errors import InputError
from attnscope.spans import span_of
from attnscope.tokens import Given, Section, Token, Tokens


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
        ("Unlocked", (2, 3, 4)),
        ("unlocked door", (2, 3, 4, 5)),
        ("unlocked   door,", (2, 3, 4, 5, 6)),
        ("the door", (7, 8)),
        ("door, the", (5, 6, 7)),
        ("door@8", (8,)),
        ("door@-6", (8,)),
        ("door#1", (5,)),
        ("door#2", (8,)),
        ("in", (9,)),  # the word, and not the piece of another one
        ("in@10", (10,)),
        ("inside", (10, 11)),
        ("side", (11,)),
        ("4", (12,)),  # a word of the text
        ("@4", (4,)),
        ("pos:4", (4,)),
        ("5", (5,)),
        ("-1", (13,)),
        ("4-6", (4, 5, 6)),
        ("@4-6", (4, 5, 6)),
        ("-3--2", (11, 12)),
        ("pos:first", (0,)),
        ("pos:last", (13,)),
        ("pos:ALL", tuple(range(14))),
        ("[CLS]", (0,)),
        ("[CLS] The unlocked", (0, 1, 2, 3, 4)),
        (4, (4,)),
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
        ("door#0", "'door' stands 2 times"),
        ("unlocked#2", "'unlocked' stands once"),
        ("the door@5", "no token 'the door@5' in the input: 'the door' stands at 7$"),
        ("the window", "no token 'the window' in the input"),
        ("nlocked", "no token 'nlocked' in the input"),
        ("6-4", "no tokens 6-4 in the input: the first of them comes after the last"),
        ("4-99", "no token 99 in the input: positions 0-13$"),
        ("pos:middle", "no position 'pos:middle': there are pos:first, pos:last, pos:all, pos:4-5$"),
    ],
)
def test_what_is_not_there_or_there_twice_is_told_with_its_positions(story, wanted, why):
    with pytest.raises(InputError, match=why):
        span_of(story, wanted)


def test_several_words_that_stand_twice_are_listed_by_their_first_positions():
    text = cut("the cat saw the cat", "the", "cat", "saw", "the", "cat", around=False)
    with pytest.raises(InputError, match=r"'the cat' stands 2 times: choose one of the cat@0, the cat@3$"):
        span_of(text, "the cat")
    assert span_of(text, "the cat#2").positions == span_of(text, "the cat@3").positions == (3, 4)


def test_a_span_is_told_by_its_positions_and_the_text_as_it_was_written(story):
    assert span_of(story, "UNLOCKED").name == "2-4 unlocked"
    assert span_of(story, "door@8").name == "8 door"
    assert span_of(story, "pos:all").name == "0-13 [CLS] The unlocked … in inside 4 [SEP]"


def test_words_of_two_texts_are_looked_for_in_both():
    first, second = cut("a cat", "a", "cat", around=False), cut("the cat", "the", "cat", around=False)
    items = [*first.items, *(Token(t.id, t.piece, t.text, t.span, t.word, part=1) for t in second.items)]
    pair = Tokens(("a cat", "the cat"), tuple(items))
    assert span_of(pair, "the cat").positions == (2, 3)
    with pytest.raises(InputError, match="choose one of cat@1, cat@3"):
        span_of(pair, "cat")


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


def test_a_mask_is_found_in_whatever_spelling_the_model_has_for_it():
    items = (Token(1, "the", "the", (0, 3), 0), Token(2, "<mask>", "<mask>", (4, 10), None, special=True))
    assert span_of(Tokens(("the <mask>",), items), "[MASK]").positions == (1,)


def test_a_character_of_several_bytes_is_the_span_of_all_of_them():
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
        ("ROLE:Assistant", (2, 3)),
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
        ("role:user#0", "no role 'role:user#0'"),
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
