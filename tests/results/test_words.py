"""Which tokens make up a word, for real tokenizers of every sort."""

import pytest
from small_tokenizers import BUILD

from attnscope.errors import InputError
from attnscope.model.inputs.text import encode
from attnscope.results.base.groups import joined, number_at, starts_of, words_of
from attnscope.tokens import Patches, Token, Tokens
from attnscope.vocabulary import Unit

WORD_PIECES = ("bert", "mpnet")
BYTE_LEVEL = ("roberta", "deberta", "gpt2")
SENTENCE_PIECE = ("albert", "deberta-v2", "xlm-roberta", "camembert", "t5", "pegasus", "llama")
FAMILY = "👩\u200d👩\u200d👧"


@pytest.fixture(scope="module")
def tokens():
    """`tokens(sort, *texts)`: what a tokenizer of that sort makes of the texts."""
    built = {}

    def read(sort: str, *texts: str) -> Tokens:
        tokenizer = built.setdefault(sort, None) or built.update({sort: BUILD[sort]()}) or built[sort]
        return encode(tokenizer, texts, name=sort, limit=None).tokens

    return read


def words(found: Tokens) -> list[str]:
    """The words between the special tokens."""
    return [token.name for token in joined(found, words_of(found)).items if not token.special]


@pytest.mark.parametrize("sort", [*WORD_PIECES, *BYTE_LEVEL])
def test_word_pieces_and_bytes_join_into_words_and_punctuation_stays_apart(tokens, sort: str) -> None:
    found = tokens(sort, "closing the door, opened")
    assert words(found) == ["closing", "the", "door", ",", "opened"]
    assert len(words_of(found)) < len(found)


@pytest.mark.parametrize("sort", SENTENCE_PIECE)
def test_sentence_pieces_join_between_blanks(tokens, sort: str) -> None:
    assert words(tokens(sort, "closing the door, opened 12")) == ["closing", "the", "door,", "opened", "12"]


@pytest.mark.parametrize("sort", BYTE_LEVEL)
def test_bytes_of_one_chinese_character_are_one_word_and_characters_stay_apart(tokens, sort: str) -> None:
    found = tokens(sort, "我喜猫 日")
    assert words(found) == ["我", "喜", "猫", "日"]
    assert len(found) >= 3 * 4


@pytest.mark.parametrize("sort", SENTENCE_PIECE)
def test_chinese_keeps_the_pieces_of_the_vocabulary_as_words(tokens, sort: str) -> None:
    whole = ["我", "喜欢", "猫", "日", "本"] if sort != "llama" else ["我", "喜", "欢", "猫", "日", "本"]
    assert words(tokens(sort, "我喜欢猫 日本")) == whole


@pytest.mark.parametrize("sort", [*BYTE_LEVEL, *SENTENCE_PIECE])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("القط على الباب", ["القط", "على", "الباب"]),
        ("القِط على", ["القِط", "على"]),  # a vowel mark, which some tokenizers split off
        ("می\u200cخواهم", ["می\u200cخواهم"]),  # a joiner within a word
        (f"the {FAMILY} door", ["the", FAMILY, "door"]),
        ("de\u0301door the", ["de\u0301door", "the"]),
    ],
)
def test_marks_joiners_and_emoji_are_never_parted(tokens, sort: str, text: str, expected: list[str]) -> None:
    assert words(tokens(sort, text)) == expected


@pytest.mark.parametrize("sort", [name for name in BUILD if name not in ("gpt2", "llama", "canine", "byt5")])
def test_special_tokens_and_masks_stay_by_themselves(tokens, sort: str) -> None:
    found = tokens(sort, "closing [MASK] closing")
    groups = words_of(found)
    names = joined(found, groups).names
    assert [name.strip("▁") for name in names if "mask" in name.lower() or "extra_id" in name] != []
    for position, token in enumerate(found.items):
        if token.special or "mask" in token.name.lower() or "extra_id" in token.name:
            assert (position,) in groups


@pytest.mark.parametrize("sort", [*WORD_PIECES, *BYTE_LEVEL, *SENTENCE_PIECE])
def test_every_token_is_in_one_word_and_in_order(tokens, sort: str) -> None:
    found = tokens(sort, f"unopened the  door,\n12 我喜欢 {FAMILY}.", "closing القط")
    assert [i for word in words_of(found) for i in word] == list(range(len(found)))
    for word in words_of(found):
        assert len({found.items[i].part for i in word}) == 1, "a word stands in one of the two texts"


def test_a_word_is_cut_from_its_own_text_of_a_pair(tokens) -> None:
    found = tokens("bert", "the door", "closing")
    word = joined(found, words_of(found)).items[-2]
    assert (word.text, word.span, word.part) == ("closing", (0, 7), 1)


@pytest.mark.parametrize("sort", ["canine", "byt5"])
def test_a_tokenizer_without_offsets_is_refused_in_one_line(tokens, sort: str) -> None:
    with pytest.raises(InputError, match="--by word needs a tokenizer with offsets") as refusal:
        words_of(tokens(sort, "the door"))
    assert "\n" not in str(refusal.value)


def test_patches_stay_by_themselves_and_keep_their_stretch() -> None:
    items = [Token(1, "o", "o", (0, 1), 0), Token(2, "n", "n", (1, 2), 0)]
    items += [Token(9, "<image>", "<image>", (2, 9), 0)] * 6 + [Token(3, "x", "x", (9, 10), 0)]
    found = Tokens(("on<image>x",), tuple(items), (Patches(2, 2, 3),))
    groups = words_of(found)
    assert groups == ((0, 1), (2,), (3,), (4,), (5,), (6,), (7,), (8,))
    assert joined(found, groups).stretches == (Patches(1, 2, 3),)


@pytest.mark.parametrize("sort", ["bert", "roberta", "t5", "llama"])
def test_a_special_token_typed_within_a_word_parts_it(tokens, sort: str) -> None:
    typed = "[SEP]" if sort == "bert" else "</s>"
    found = tokens(sort, f"the{typed}door opened")
    place = next(i for i, token in enumerate(found.items) if token.special and not token.added)
    assert (place,) in words_of(found)
    assert words(found) == ["the", "door", "opened"]


CUT = [
    ["The door opened. ", "It was cold! ", "Was it? ", "Yes"],
    ["He said “no.” ", "(She left.) ", "Then … ", "Nothing"],
    ["Dr. Smith and J. Doe met Mrs. Lee. ", "They left."],
    ["It was, e.g. this one, at 5 p.m. sharp. ", "In 1999. ", "It rained."],
    ["Version 2.5 costs 3.50 in all. ", "Good."],
    ["all of it is small. ", "so small letters begin sentences. ", "as here."],
    ["这是门。", "它开了！", "为什么？", "因为"],
    ["no end at all"],
    ["One line\nof a passage goes on. ", "Here."],
]


@pytest.mark.parametrize("parts", CUT)
def test_a_sentence_begins_where_the_rule_says(parts: list[str]) -> None:
    text = "".join(parts)
    expected = [sum(map(len, parts[:i])) for i in range(len(parts))]
    assert starts_of(text, Unit.SENTENCE) == expected


def test_a_passage_ends_at_a_blank_line_and_so_does_a_sentence() -> None:
    text = "A title\n\nOne. Two.\nStill two \n  \n\nThree"
    passages = starts_of(text, Unit.PASSAGE)
    assert [text[start:].split("\n")[0] for start in passages] == ["A title", "One. Two.", "Three"]
    sentences = starts_of(text, Unit.SENTENCE)
    assert [text[start:].split()[0] for start in sentences] == ["A", "One.", "Two.", "Still", "Three"]
    assert set(passages) <= set(sentences)


def test_a_character_is_in_the_last_that_began_before_it() -> None:
    starts = [0, 4, 9]
    assert [number_at(starts, at) for at in (0, 3, 4, 8, 9, 50)] == [0, 0, 1, 1, 2, 2]
