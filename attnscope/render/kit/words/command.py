"""The command that opens one head of what is shown: it does so when it is pasted into a shell.

A result knows its text and how its model was run, but not every input: what it cannot spell out stands as
`...`.
"""

from typing import Protocol

from rich.text import Text

from attnscope.render.kit.words.shell import word
from attnscope.results import Kind, Overview, Provenance, Special
from attnscope.tokens import Patches, Tokens
from attnscope.vocabulary import IN_PARTS

_LONGEST = 300  # characters of a text that a command still carries
_SPARED = '"..."'


class Command(Text):
    """A line to be pasted, which is printed without a line break at whatever width."""


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
    return opening_head(result, layer, head, aim[0]) + looked_at(result.words, result.special)


def looked_at(words: bool, special: Special) -> str:
    """` --words --special hide`, empty where tokens are shown as they are."""
    left = "" if special is Special.SHOW else f" --special {special.value}"
    return f"{' --words' if words else ''}{left}"


def opening_head(
    result: Heads, layer: int | str, head: int | str, query: int | None = None, key: int | None = None
) -> str:
    """The command that opens a head of `result`, with the query and the key at these positions."""
    asked = [] if query is None else ["--query", _label(result.query_tokens, query)]
    asked += [] if key is None else ["--key", _label(result.key_tokens, key)]
    parts = [
        *("attnscope heads", *_read(result)),
        *("-m", word(result.provenance.model), *_run(result)),
        *("--layer", str(layer), "--head", str(head), *asked),
    ]
    return " ".join(parts)


def _read(result: Heads) -> list[str]:
    """What was read, as far as the result has it."""
    cross = result.kind is Kind.CROSS
    tokens = result.key_tokens if cross else result.query_tokens
    texts = _texts(tokens)
    if stretches := (*result.query_tokens.stretches, *result.key_tokens.stretches):
        file = ["--image" if isinstance(stretches[0], Patches) else "--audio", "..."]
        return [_SPARED, *file] if result.query_tokens.texts and not cross else file
    if not texts:
        return [_SPARED]
    read = [word(texts[0])]
    if len(texts) > 1:
        read += ["--pair", word(texts[1])]
    if cross and not result.query_tokens.written:
        target = _texts(result.query_tokens)
        read += ["--target", word(target[0]) if target else _SPARED]
    return read


def _texts(tokens: Tokens) -> tuple[str, ...]:
    """The texts as they were given; none where they cannot be given again in a line."""
    written = tokens.written and len(tokens.texts) > 1
    spoken = all(text.isprintable() and not text.startswith("-") for text in tokens.texts)
    alone = not written and not tokens.words_given and spoken
    return tokens.texts if alone and sum(map(len, tokens.texts)) <= _LONGEST else ()


def _run(result: Heads) -> list[str]:
    """How the model was run, where that is not as it comes."""
    told, options = result.provenance, []
    if told.dtype != "float32":
        options += ["--dtype", told.dtype]
    names = told.kernel.split(", ")
    if names[-1] == IN_PARTS:
        options += ["--tiled"]  # which chooses its kernel itself
    elif names[0] not in ("eager", ""):
        options += ["--attn", names[0]]
    if result.kind is Kind.CROSS:
        options += ["--kind", result.kind.value]
    if result.tower:
        options += ["--tower", word(result.tower)]
    return options


def _label(tokens: Tokens, position: int) -> str:
    return word(tokens.labels[position])
