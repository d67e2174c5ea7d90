"""Errors that a user can cause, each with its exit code.

An `AttnscopeError` is one line saying what, where and what is possible, without control characters. It is
raised close to the cause and caught once, in `attnscope.cli.app`. A lack of memory or open files is not
treated as a bug, nor is another package that fails on import. Anything else that escapes is a bug and keeps
its traceback.
"""

import errno
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from attnscope.printable import printable


class AttnscopeError(Exception):
    """Base of errors shown as one line; `exit_code` is what the process returns."""

    exit_code: int = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(AttnscopeError):
    """Invalid input or usage: a text, an option, an output path."""

    exit_code = 2


class Damaged(Exception):
    """A stored result does not fit its schema; the message says where."""


class Departs(Exception):
    """A stored result does not follow from the data stored with it."""


class ModelUnavailableError(AttnscopeError):
    """The model cannot be found, downloaded or read."""

    exit_code = 3


class DoesNotFitError(AttnscopeError):
    """The work needs more memory than is available."""

    exit_code = 4


class CertificateError(AttnscopeError):
    """The recomputed attention and the model's own do not agree."""

    exit_code = 5


class ExceededError(AttnscopeError):
    """A requested threshold was exceeded; results have been shown and written before."""

    exit_code = 6


class NobodyReadsError(AttnscopeError):
    """The reader of standard output has closed it; the program ends silently, as by SIGPIPE."""

    exit_code = 141


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` (or its cause) reports that memory is full."""
    full = ["out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory"]
    if isinstance(error, ImportError):
        full.append("failed to map segment")  # of a library that is opened
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in full):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


def lacking(error: BaseException) -> AttnscopeError | None:
    """The error for a lack of memory, open files, temporary folder or package; None for other errors."""
    if is_out_of_memory(error):
        return DoesNotFitError(f"this does not fit in memory: {one_line(error)}")
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE) or "too many open files" in str(error).lower():
        return InputError(f"no more files may be open at once, ulimit -n allows more: {one_line(error)}")
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, FileNotFoundError) and "No usable temporary directory" in str(error):
        return InputError("no folder takes temporary files: name one that can be written, as TMPDIR")
    return _broken_package(error)


def _broken_package(error: BaseException) -> AttnscopeError | None:
    package = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name, code = str(frame.f_globals.get("__name__")).partition(".")[0], frame.f_code
        if name == "attnscope" or (code.co_name == "<module>" and not code.co_filename.startswith("<")):
            package = name
    if package in ("attnscope", *sys.stdlib_module_names):
        return None
    from importlib import metadata

    names = metadata.packages_distributions().get(package)
    if not names:
        return None
    return ModelUnavailableError(
        f"{names[0]} {metadata.version(names[0])} fails as it is imported: {one_line(error)}: install a "
        "version that fits the other packages, or remove it where nothing needs it"
    )


def listed(numbers: Sequence[int]) -> str:
    """Numbers as text: `0-11` for an unbroken run, else comma-separated."""
    unbroken = len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]}-{numbers[-1]}" if unbroken else ", ".join(map(str, numbers))


def nearest(word: str, choices: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Up to `most` choices spelled most like `word`, the closest first, each at least `likeness` alike."""
    from difflib import get_close_matches

    return get_close_matches(word, list(choices), most, likeness)


def one_line(error: BaseException) -> str:
    """The first line of another library's message, at most 200 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    if first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"
    if isinstance(error, LookupError):
        first = f"{type(error).__name__} {first}"
    return first if len(first) <= 200 else first[:197] + "..."


@contextmanager
def calling(trying: str, possible: str = "") -> Iterator[None]:
    """Context manager around a library call that reads model files: any error becomes one line.

    Libraries raise anything: their own errors, Python's, a bare `Exception`, an assertion, a panic of Rust,
    which is not even an `Exception`. It becomes a `ModelUnavailableError` that says what was tried, why it
    failed and what is possible. Our own errors and those that stop the program pass through. Never used
    around our own code, whose bugs keep their traceback.
    """
    try:
        yield
    except AttnscopeError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not _is_panic(error):
            raise
        if is_out_of_memory(error):
            raise DoesNotFitError(f"{trying}: not enough memory: {one_line(error)}") from error
        raise ModelUnavailableError(f"{trying}: {one_line(error)}{possible}") from error


def _is_panic(error: BaseException) -> bool:
    """Whether the error is a panic in Rust code (each PyO3 library has its own class)."""
    return type(error).__name__ == "PanicException"
