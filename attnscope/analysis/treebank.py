"""Reads treebanks in CoNLL-U format (universaldependencies.org/format.html): words, tags, heads, relations.

Other columns are dropped, and nothing is repaired: a sentence with a line that breaks the format is left out
and reported by file and line. Syntactic words count: of a multiword token (`1-2`) its parts; empty nodes
(`1.1`) are no words.

"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from attnscope import incoming
from attnscope.errors import InputError

_FIELDS = 10
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,5})(?:([-.])([1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class Sentence:
    """A sentence's words, with each word's head (index from 0, -1 for the root) and relation.

    `line` is that of its first word in the file, from 1; `tags` are the parts of speech, "_" for none.
    """

    line: int
    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...] = ()

    @property
    def edges(self) -> list[tuple[int, int, str]]:
        """Dependent, head and relation of every word but the root."""
        pairs = zip(self.heads, self.relations, strict=True)
        return [(i, head, name) for i, (head, name) in enumerate(pairs) if head >= 0]


class _Word(NamedTuple):
    line: int
    form: str
    head: int
    relation: str
    tag: str


@dataclass(frozen=True)
class Bank:
    """The sentences of a file, and the error of each damaged one."""

    sentences: tuple[Sentence, ...]
    damaged: tuple[str, ...] = ()


def read_treebank(path: Path, limit: int | None = None) -> Bank:
    """The sentences of a CoNLL-U file, at most `limit`; damaged ones are left out and listed.

    Raises `InputError` where none is left.
    """
    sentences: list[Sentence] = []
    damaged: list[str] = []
    name = incoming.called(path)
    for first, block in _blocks(line for _, line in incoming.whole_lines(path)):
        try:
            sentences += filter(None, [read_block(block, name, first)])
        except InputError as error:
            damaged.append(str(error))
        if limit is not None and len(sentences) >= limit:
            break
    if damaged and not sentences:
        raise InputError(damaged[0])
    if not sentences:
        raise InputError(f"no sentence in {incoming.named(path)}: it takes CoNLL-U, one word a line")
    return Bank(tuple(sentences), tuple(damaged))


def _blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    block: list[bytes] = []
    for number, line in enumerate(chain(lines, [b""]), start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def read_block(lines: Sequence[bytes], name: str, first: int) -> Sentence | None:
    """Parses one sentence from lines without a blank one; `first` is the line number in the file `name`.

    None where no line is a word; raises `InputError` for a line that is not as the format says.
    """
    words: list[_Word] = []
    for number, raw in enumerate(lines, start=first):
        try:
            words += filter(None, [_word(raw.removesuffix(b"\r").decode("utf-8"), number, len(words))])
        except ValueError as error:
            why = "it is not valid UTF-8" if isinstance(error, UnicodeError) else error
            raise InputError(f"{name}:{number}: {why}") from error
    for word in words:
        if word.head > len(words):
            told = f"the head of '{word.form}' is word {word.head}, the sentence has {len(words)}"
            raise InputError(f"{name}:{word.line}: {told}")
    if not words:
        return None
    lines_, forms, heads, relations, tags = zip(*words, strict=True)
    return Sentence(lines_[0], forms, tuple(head - 1 for head in heads), relations, tags)


def _word(text: str, line: int, before: int) -> _Word | None:
    """The word on a line, behind `before` words; None for comments, multiword tokens and empty nodes."""
    if text.startswith("#"):
        if before:
            raise ValueError("a comment stands in front of a sentence, not within it")
        return None
    fields = text.split("\t")
    if len(fields) != _FIELDS:
        there = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise ValueError(f"{there} between tabs, a word of CoNLL-U has {_FIELDS}")
    if (number := _NUMBER.fullmatch(fields[0])) is None:
        raise ValueError(f"'{fields[0]}' is no number of a word: 1, 1-2 or 1.1")
    first, between, last = number.groups()
    if between == "-" and not before + 1 == int(first) <= int(last):
        raise ValueError(f"multiword token {fields[0]} stands before word {before + 1}")
    if between == "." and int(first) != before:
        raise ValueError(f"empty node {fields[0]} stands behind word {before}")
    if between is not None:
        return None
    if int(first) != before + 1:
        raise ValueError(f"word {first} stands where word {before + 1} should")
    return _Word(line, *_described(fields, before + 1))


def _described(fields: Sequence[str], own: int) -> tuple[str, int, str, str]:
    form, head, relation = fields[1].strip(), fields[6], fields[7].strip()
    if not form:
        raise ValueError(f"word {own} has no form")
    if re.fullmatch(r"0|[1-9][0-9]{0,5}", head) is None:
        raise ValueError(f"the head of '{form}' is '{head}': it is the number of a word, or 0")
    if int(head) == own:
        raise ValueError(f"'{form}' is its own head")
    if relation in ("", "_"):
        raise ValueError(f"'{form}' has no relation to its head")
    return form, int(head), relation, fields[3].strip() or "_"
