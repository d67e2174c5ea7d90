"""Around one call into a library that reads a model's files: whatever it raises of them is one line.

What they raise is anything: their own errors, Python's, a bare `Exception`, an assertion, a panic of Rust,
which is not even an `Exception`. So this stands around a call of theirs and never around code of ours, whose
bugs keep their traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from attnscope.errors import (
    AttnscopeError,
    DoesNotFitError,
    ModelUnavailableError,
    is_out_of_memory,
    one_line,
)


@contextmanager
def calling(trying: str, possible: str = "") -> Iterator[None]:
    """`ModelUnavailableError` for what a library raises inside: what was tried, why not, what is possible.

    Our own errors pass through, and so does all that stops the program.
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
    """Whether code in Rust gave up; its class is made anew in every library that is built with PyO3."""
    return type(error).__name__ == "PanicException"
