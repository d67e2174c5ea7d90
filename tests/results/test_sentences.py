"""Where sentences and passages begin, by the rule that is written down, beside texts cut by hand."""

import pytest

from attnscope.results.base.groups import number_at, starts_of
from attnscope.vocabulary import Unit

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
