"""The command that opens one head of what is shown: it does so when it is pasted into a shell.

What somebody typed is said again as it was typed (`as_typed`). A result that comes from elsewhere knows its
text and how its model was run, but not every input: what it cannot spell out stands as `...`, and the file of
a picture or a sound as `FILE`.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from rich.cells import cell_len
from rich.text import Text

from attnscope.printable import word
from attnscope.results import Kind, Overview, Provenance, Special
from attnscope.spans import every_span
from attnscope.tokens import Patches, Tokens
from attnscope.vocabulary import IN_MEMORY, IN_PARTS, KERNELS, Unit

_LONGEST = 300  # characters of a text that a command still carries
_LONGEST_NUMBERS = 2000  # characters of token numbers
_SPARED = '"..."'
_WIDE = 78  # cells of a line of a command
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*")+""")
TILED = "--tiled"  # an option of `heads` alone: other questions choose by the length of the text
_UNKNOWN = "..."  # what an encoder read, the result of a decoder does not say it
_FILE = "FILE"


@dataclass(frozen=True)
class Typed:
    """What was typed, as words of a shell, of which a result knows no more than a part.

    `read` gives again all that is read; None where results say that better, as where two texts are compared.
    `writing` has the model go on as it did, and `run` has it run as it did: options, each with its value.
    """

    read: tuple[str, ...] | None = None
    writing: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


_NOTHING = Typed()
_typed: ContextVar[Typed] = ContextVar("typed", default=_NOTHING)
_GO_ON = ("heads", "find", "tsne", "flow", "report", "explore")  # commands that know --generate


@contextmanager
def as_typed(typed: Typed) -> Iterator[None]:
    """Commands within read and run what was typed."""
    before = _typed.set(typed)
    try:
        yield
    finally:
        _typed.reset(before)


def text_words(text: str) -> tuple[str, ...]:
    """A text as the first words behind a command; one that is not for a line comes from a file."""
    return (word(text),) if _is_for_a_line(text) else ("-", "<", "your-text.txt")


def _is_for_a_line(*texts: str) -> bool:
    spoken = all(text.isprintable() and not text.startswith("-") for text in texts)
    return spoken and sum(map(len, texts)) <= _LONGEST


class Command(Text):
    """A line to be pasted, which is printed without a line break at whatever width."""


def continued(command: str) -> list[str]:
    """The command in lines that a shell takes as one, set in; in one line where the shell has no such mark.

    A word is never broken, and neither are an option and what it is given.
    """
    words = _WORD.findall(command)
    if sys.platform == "win32" or " ".join(words) != command:
        return [f"  {command}"]
    parts = list[str]()
    for each in words:
        option = parts and parts[-1].startswith("-") and " " not in parts[-1] and not each.startswith("-")
        parts[-1:] = [f"{parts[-1]} {each}"] if option else [*parts[-1:], each]
    lines = ["  " + parts[0]]
    for each in parts[1:]:
        if cell_len(f"{lines[-1]} {each} \\") <= _WIDE:
            lines[-1] += f" {each}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {each}")
    return lines


def runs(command: str) -> bool:
    """Whether the command is whole: nothing in it stands for what the result does not know."""
    words = command.split()
    unnamed = any(pair in (("--image", _FILE), ("--audio", _FILE)) for pair in pairwise(words))
    unread = words[1:3] in (["corpus", _FILE], ["dependencies", _FILE])
    return _SPARED not in command and _UNKNOWN not in words and not unnamed and not unread


class Heads(Protocol):
    """What shows several heads of one run: enough to say how one of them is opened."""

    @property
    def kind(self) -> Kind: ...

    @property
    def query_tokens(self) -> Tokens: ...

    @property
    def key_tokens(self) -> Tokens: ...

    @property
    def provenance(self) -> Provenance: ...

    @property
    def tower(self) -> str: ...


def opening(result: Overview, layer: int, head: int) -> str:
    """`attnscope heads 'a text' -m demo --layer 3 --head 11`, looked at as `result` is."""
    aim = result.aim or (None, None)
    return opening_head(result, layer, head, aim[0]) + looked_at(result.by, result.special)


def looked_at(by: Unit, special: Special) -> str:
    """` --by word --special hide`, empty where tokens are shown as they are."""
    left = "" if special is Special.SHOW else f" --special {special.value}"
    return f"{f' --by {by.value}' if by.joins else ''}{left}"


def opening_head(
    result: Heads, layer: int | str, head: int | str, query: int | None = None, key: int | None = None
) -> str:
    """The command that opens a head of `result`, with the query and the key at these positions."""
    asked = [] if query is None else ["--query", label(result.query_tokens, query)]
    asked += [] if key is None else ["--key", label(result.key_tokens, key)]
    return asking(result, "heads", "--layer", str(layer), "--head", str(head), *asked)


def asking(result: Heads, command: str, *options: str) -> str:
    """`attnscope find 'a text' -m demo --from [MASK] --to opened`: the same run, asked something else."""
    typed, run = _typed.get(), [each for each in _run(result) if each != TILED or command == "heads"]
    read = _read(result) if typed.read is None else list(typed.read)
    if typed.writing:  # without it the answer would be another one
        read += typed.writing if command in _GO_ON else [_UNKNOWN]
    return _spelled([command, *read], result.provenance, run, options)


def asking_of_file(command: str, told: Provenance, kind: Kind, tower: str, *options: str) -> str:
    """A command that asks of the corpus or treebank that is read."""
    read = " ".join(_typed.get().read or (_FILE,))
    return asking_of_model(f"{command} {read}", told, kind, tower, *options)


def asking_of_model(command: str, told: Provenance, kind: Kind, tower: str, *options: str) -> str:
    """`attnscope compose -m demo`: what is asked of a model and not of one text.

    Which attention is said where somebody chose it; a result that comes from elsewhere does not know.
    """
    chosen = ["--kind", kind.value, *(["--tower", word(tower)] if tower else [])]
    which = chosen if _typed.get() is _NOTHING else []
    return _spelled([command], told, [*_way(told), *which], options)


def asking_of_text(
    command: str, text: str, told: Provenance, kind: Kind | None, tower: str, *options: str
) -> str:
    """A command that asks of one text of many; empty where that is not for a line."""
    if not _is_for_a_line(text):
        return ""
    chosen = [] if kind is None else ["--kind", kind.value, *(["--tower", word(tower)] if tower else [])]
    which = chosen if _typed.get() is _NOTHING and kind not in (None, Kind.ENCODER) else []
    return _spelled([command, word(text)], told, [*_way(told), *which], options)


def showing_second() -> str:
    """`attnscope show B.npz`: the second of two files that were compared; empty where nobody typed two."""
    files = _typed.get().read or ()
    return f"attnscope show {files[1]}" if len(files) == 2 else ""


def _spelled(asked: list[str], told: Provenance, run: list[str], options: tuple[str, ...]) -> str:
    more = [each for each in _typed.get().run if each.partition(" ")[0] not in run]
    return " ".join(["attnscope", *asked, *_model(told), *run, *more, *options])


def finding(result: Heads, query: int, key: int, span: Sequence[int] = ()) -> str:
    """The command that ranks all heads by one link, beside control texts; the query may be a `span`."""
    sides = label(result.query_tokens, query, span), label(result.key_tokens, key)
    return asking(result, "find", "--from", sides[0], "--to", sides[1])


def _read(result: Heads) -> list[str]:
    if stretches := (*result.query_tokens.stretches, *result.key_tokens.stretches):
        read = ["--image" if isinstance(stretches[0], Patches) else "--audio", _FILE]
        if result.kind is Kind.CROSS:
            return read + _target(result, spared=False)
        return [_SPARED, *read] if result.query_tokens.texts else read
    if _is_beside_an_encoder(result) and result.kind is Kind.DECODER:  # what the encoder read is not in it
        return [_SPARED if result.provenance.inputs else _UNKNOWN, *_target(result)]
    cross = result.kind is Kind.CROSS
    given = result.key_tokens if cross else result.query_tokens
    if given.given is not None:
        return [*_numbers("--ids", given, result.provenance.token_ids), *(_target(result) if cross else [])]
    texts = _texts(given)
    if not texts:
        return [_SPARED]
    read = [word(texts[0])]
    if len(texts) > 1:
        read += ["--pair", word(texts[1])]
    return read + _target(result) if cross else read


def _numbers(option: str, tokens: Tokens, ids: tuple[int, ...]) -> list[str]:
    told = ",".join(map(str, ids or tokens.ids))
    whole = bool(ids) or not tokens.numbers
    return [option, told] if whole and len(told) <= _LONGEST_NUMBERS else [_SPARED]


def _target(result: Heads, spared: bool = True) -> list[str]:
    if result.query_tokens.written:
        return []
    if result.query_tokens.given is not None:
        return _numbers("--target-ids", result.query_tokens, ())
    target = _texts(result.query_tokens)
    if not target:
        return ["--target", _SPARED] if spared else []
    return ["--target", word(target[0])]


def _is_beside_an_encoder(result: Heads) -> bool:
    """Whether the model has other attention that it would show: a decoder beside an encoder, or that one.

    Of a picture or a sound the result has no numbers that were read, and of a decoder's words no patches.
    """
    told = result.provenance
    if result.kind is Kind.CROSS or "decoder_input_ids" in told.inputs:
        return True
    stretches = result.query_tokens.stretches
    if result.kind is Kind.ENCODER:
        return bool(stretches)
    return not (stretches or told.inputs or told.token_ids) and bool(result.query_tokens.texts)


def _texts(tokens: Tokens) -> tuple[str, ...]:
    written = tokens.written and len(tokens.texts) > 1
    alone = not written and not tokens.words_given
    return tokens.texts if alone and _is_for_a_line(*tokens.texts) else ()


def _model(told: Provenance) -> list[str]:
    named = ["-m", word(told.model)]
    if told.adapter not in (None, told.model):
        in_memory = told.adapter is not None and told.adapter.endswith(IN_MEMORY)
        named += ["--adapter", _UNKNOWN if in_memory else word(told.adapter)]
    if told.tokenizer is not None:
        named += ["--tokenizer", word(told.tokenizer)]
    return [*named, "--ignore-unread"] if told.unread else named


def _run(result: Heads) -> list[str]:
    options = _way(result.provenance)
    if _is_beside_an_encoder(result):
        options += ["--kind", result.kind.value]
    if result.tower:
        options += ["--tower", word(result.tower)]
    return options


def _way(told: Provenance) -> list[str]:
    options, names = [] if told.dtype == "float32" else ["--dtype", told.dtype], told.kernel.split(", ")
    if names[-1] == IN_PARTS:
        options += [TILED]  # which chooses its kernel itself
    elif names[0] in KERNELS and names[0] != "eager":  # code of its own has none to choose
        options += ["--attn", names[0]]
    return options


def label(tokens: Tokens, position: int, span: Sequence[int] = ()) -> str:
    """The name of a token as a word of a command; its place where that reads the tokens by number.

    A sentence is named by its own number, and several tokens, the `span`, by where they stand.
    """
    if tokens.of_sentences:
        return str(tokens.positions[position])
    if len(span) > 1:
        return f"pos:{tokens.positions[span[0]]}-{tokens.positions[span[-1]]}"
    if tokens.given is None or _typed.get().read is not None:
        name = tokens.labels[position]
        if tokens.items[position].id < 0 and len(every_span(tokens, name)) > 1:  # the same words, not joined
            name = f"{tokens.names[position]}@{tokens.positions[position]}"
        return word(name)
    first, behind = tokens.positions[position], position + 1
    if tokens.items[position].id >= 0:  # no unit of several
        return f"@{first}"
    return f"pos:{first}-{tokens.positions[behind] - 1 if behind < len(tokens) else -1}"
