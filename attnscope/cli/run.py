"""What is remembered of this run: the command as it was typed."""

from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from attnscope.render.kit.words.shell import word as quoted

_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_OUT, _ASIDE = ("-o", "--out"), ("-q", "--quiet", "-v", "--verbose", "--legend", "--json")


def remember(arguments: Sequence[str]) -> None:
    """Note what stands behind `attnscope` in this run."""
    _TYPED.set(tuple(map(_as_meant, arguments)))


def _as_meant(word: str) -> str:
    """A word as it was typed, whose bytes Python could not decode where the system is not UTF-8."""
    try:
        return word.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return word


def typed_command(out: str) -> str:
    """The command with `out` in the place of the files that were named; empty where nobody typed one."""
    typed = list(_kept(_TYPED.get()))
    return " ".join(map(quoted, ["attnscope", *typed, "-o", out])) if typed else ""


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for word in rest:
        if word in _OUT:
            next(rest, None)
        elif word not in _ASIDE and not word.startswith(("--out=", "-o")):
            yield word
