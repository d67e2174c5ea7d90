"""A tokenizer that nobody changes any more says of itself what it said the first time, and reads as ever."""

from typing import Any

import pytest

from attnscope.errors import ModelUnavailableError
from attnscope.model.inputs.tokenizer import Settled, Tokenizer


class Own:
    """Stands for a tokenizer of the library, which counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.mask_token = "[M]"

    @property
    def all_special_ids(self) -> list[int]:
        self.asked += 1
        return [1, 2]

    @property
    def broken(self) -> int:
        raise KeyError("[UNK]")

    def tokenize(self, text: str) -> list[str]:
        self.asked += 1
        return text.split()

    def __call__(self, *texts: str, **options: Any) -> tuple[str, ...]:
        return texts


def test_what_it_says_of_itself_is_asked_once_and_texts_are_read_every_time() -> None:
    own = Own()
    settled = Settled.of(Tokenizer(own, "a model"))
    assert [settled.all_special_ids for _ in range(3)] == [[1, 2]] * 3
    assert own.asked == 1
    assert [settled.tokenize("a b"), settled.tokenize("c")] == [["a", "b"], ["c"]]
    assert own.asked == 3
    assert settled("text") == ("text",)
    assert settled.own is own
    own.mask_token = "[N]"
    assert settled.mask_token == "[N]"  # not asked before
    own.mask_token = "[O]"
    assert settled.mask_token == "[N]"
    assert Tokenizer(own, "a model").mask_token == "[O]"


def test_it_fails_in_one_line_as_the_other_does_and_what_is_none_stays_what_it_is() -> None:
    settled = Settled.of(Tokenizer(Own(), "a model"))
    with pytest.raises(ModelUnavailableError, match="its tokenizer fails at broken"):
        _ = settled.broken
    with pytest.raises(AttributeError, match="Own has no other"):
        _ = settled.other
    assert Settled.of(None) is None
