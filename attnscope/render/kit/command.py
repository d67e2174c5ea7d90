"""Shell commands that ask another question about a result's model and text.

They are made from the result's `Provenance`; without it there is no command.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from rich.cells import cell_len
from rich.text import Text

from attnscope.printable import word
from attnscope.results import Overview, Provenance, Special
from attnscope.spans import every_span
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

_LONGEST = 300  # characters of a text that a command still carries
_WIDE = 78  # cells of a line of a command
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_GO_ON = ("heads", "find", "tsne", "flow", "report", "explore", "compare")  # commands that know --generate


class Command(Text):
    """A shell command, printed without line breaks at any width."""


def continued(command: str) -> list[str]:
    """The command in lines joined by a backslash; one line on Windows.

    No word is broken, and an option stays with its value.
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


class Run(Protocol):
    """Protocol of a result that knows its provenance."""

    @property
    def provenance(self) -> Provenance: ...


class Heads(Run, Protocol):
    """Protocol of a result about heads, with the tokens of their queries and keys."""

    @property
    def query_tokens(self) -> Tokens: ...

    @property
    def key_tokens(self) -> Tokens: ...


def opening(result: Overview, layer: int, head: int) -> str:
    """Command that opens a head of an overview: `attnscope heads 'a text' -m demo --layer 3 --head 11`."""
    aim = result.aim or (None, None)
    return opening_head(result, layer, head, aim[0]) + looked_at(result.by, result.special)


def looked_at(by: Unit, special: Special) -> str:
    """Options for units and special tokens, ` --by word --special hide`; empty for the defaults."""
    left = "" if special is Special.SHOW else f" --special {special.value}"
    return f"{f' --by {by.value}' if by.joins else ''}{left}"


def opening_head(
    result: Heads, layer: int | str, head: int | str, query: int | None = None, key: int | None = None
) -> str:
    """Command that opens a head of `result`, with the query and the key at these positions."""
    asked = [] if query is None else ["--query", label(result.query_tokens, query)]
    asked += [] if key is None else ["--key", label(result.key_tokens, key)]
    return asking(result, "heads", "--layer", str(layer), "--head", str(head), *asked)


def finding(result: Heads, query: int, key: int, span: Sequence[int] = ()) -> str:
    """Command that ranks all heads by one link; the query may be a `span`."""
    sides = label(result.query_tokens, query, span), label(result.key_tokens, key)
    return asking(result, "find", "--from", sides[0], "--to", sides[1])


def asking(result: Run, command: str, *options: str) -> str:
    """Command for the same model and text: `attnscope find 'a text' -m demo --from [MASK] --to opened`.

    Empty where the input is unknown, or `command` cannot read it.
    """
    told = result.provenance
    if told.read is None or ("--generate" in told.read and command not in _GO_ON):
        return ""
    return asking_of_model(" ".join([command, *_read(told.read)]), told, *options)


def asked_by(result: Any) -> str:
    """The command that computed a result; empty where it is unknown."""
    verb, *options = getattr(result, "asked_by", ()) or ("",)
    if verb and result.asks_alone:
        return " ".join(["attnscope", verb, *map(word, options)])
    return asking(result, verb, *map(word, options)) if verb and hasattr(result, "provenance") else ""


def asking_of_text(command: str, text: str, told: Provenance, *options: str) -> str:
    """Command about one text; empty where the text does not fit a command line."""
    return asking_of_model(f"{command} {word(text)}", told, *options) if _is_for_a_line(text) else ""


def asking_of_model(command: str, told: Provenance, *options: str) -> str:
    """Command about a model alone: `attnscope compose -m demo`.

    Empty for a model that was handed over in memory.
    """
    return " ".join(["attnscope", command, *map(word, told.run), *options]) if told.run else ""


def _read(read: Sequence[str]) -> Iterator[str]:
    """Command-line words of the input; a text that is too long for the line comes from a file."""
    text, *options = read if read and not read[0].startswith("--") else ("", *read)
    piped = "your-text.txt" if text and not _is_for_a_line(text) else ""
    if "-" in options:
        piped = f"your-{options[options.index('-') - 1].strip('-')}-file"
    if text:
        yield word(text) if _is_for_a_line(text) else "-"
    yield from map(word, options)
    yield from ("<", piped) if piped else ()


def _is_for_a_line(text: str) -> bool:
    return text.isprintable() and not text.startswith("-") and len(text) <= _LONGEST


def label(tokens: Tokens, position: int, span: Sequence[int] = ()) -> str:
    """The name of a token as a word of a command.

    A sentence is named by its number, several tokens (`span`) by their positions.
    """
    if tokens.of_sentences:
        return str(tokens.positions[position])
    if len(span) > 1:
        return f"pos:{tokens.positions[span[0]]}-{tokens.positions[span[-1]]}"
    name = tokens.labels[position]
    if tokens.items[position].id < 0 and len(every_span(tokens, name)) > 1:  # the same words, not joined
        name = f"{tokens.names[position]}@{tokens.positions[position]}"
    return word(name)
