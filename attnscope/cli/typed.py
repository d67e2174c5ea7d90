"""The command as it was typed, for what is made of it: a page says how it is made again."""

from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from attnscope.render.kit.words.shell import word
from attnscope.tokens import printable

_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_OUT, _ASIDE = ("-o", "--out"), ("-q", "--quiet", "-v", "--verbose", "--json")


def remember(arguments: Sequence[str]) -> None:
    """What stands behind `attnscope` in this run."""
    # an argument that Python could not decode holds its bytes as surrogates
    meant = (each.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for each in arguments)
    _TYPED.set(tuple(meant))


def command(out: str) -> str:
    """The command with `out` in the place of the files that were named; empty where nobody typed one."""
    typed = list(_kept(_TYPED.get()))
    return printable(" ".join(map(word, ["attnscope", *typed, "-o", out]))) if typed else ""


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    """All but where it goes, and what a page does not show."""
    rest = iter(arguments)
    for each in rest:
        if each in _OUT:
            next(rest, None)
        elif each not in _ASIDE and not each.startswith(("--out=", "-o")):
            yield each
