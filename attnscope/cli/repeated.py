"""The very same question again: what was printed is printed again, before anything heavy is imported.

It is kept in the cache beside captures, as one entry that is found by all that was said (`found_by`): words,
folder, environment, terminal, and what the system tells of each file that a word names. It is printed where
all holds that it was made with: the model that is meant and its files, versions and machine, and of every
module that was imported and every file that comes with us size, times and inode (`session.cache.witnesses`).
Nothing is kept, and so the question goes its ordinary way, where a run writes a file, reads standard input or
a folder, fails, draws by lot, or is about anything that `session.cache.memory.remember` does not know; where
one of these files was changed while it ran, or up to two seconds before; and where the answer is wanted anew
(`--no-cache`).
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli import streams
from attnscope.errors import AttnscopeError, InputError, NobodyReadsError
from attnscope.model.source.here import folder_here
from attnscope.session.cache.entry import DamagedEntryError, Entry, Part
from attnscope.session.cache.memory import WITNESSES, look_into
from attnscope.session.cache.store import Place, Store, place
from attnscope.session.cache.witnesses import Witnesses, all_in_use, settled, surroundings

if TYPE_CHECKING:
    from attnscope.session.cache.memory import Memory

_FORM = 1
_PRINTED = "printed"
_ANEW = {"--no-cache", "--timings", "-"}
_OF_NO_ACCOUNT = {"_", "SHLVL", "OLDPWD", "WINDOWID"}  # of the environment: what a shell counts
_MOST = 4 * 2**20  # bytes that are kept of one answer


@dataclass
class _Run:
    """This run of the program: when it began, the key of what it prints, and what that is `made` with."""

    store: Store
    key: str
    began: int
    made: "tuple[Memory, Sequence[str]] | None" = None
    told: bool = False


_run: _Run | None = None


def answered(words: Sequence[str]) -> int | None:
    """Print what was printed when the same was asked; the exit code, or None where it is to be answered."""
    global _run
    began = time.time_ns()
    key, where = found_by(words, began), _where()
    if key is None or where is None:
        return None
    _run = _Run(Store(where), key, began)
    try:
        entry = _run.store.get(key)
        if entry is not None:
            with entry:
                if (printed := _still_true(entry)) is not None:
                    return _print_again(printed, entry.made_at)
    except (DamagedEntryError, KeyError, OSError):
        _run.store.drop(key)
    streams.copied = streams.Copy(_MOST)
    return None


def _where() -> Place | None:
    try:
        return place()
    except InputError:
        return None  # whoever needs it says it


def found_by(words: Sequence[str], now: int) -> str | None:
    """What an answer is found by; None for a question that is always answered anew."""
    if _ANEW & set(words) or not words:
        return None
    try:
        named = [_named(word, now) for each in words for word in _values(each)]
        folder = os.getcwd()
    except OSError:
        return None
    told = {
        "form": _FORM,
        "words": [list(words), sys.orig_argv, sys.executable, list(sys.flags), sys.path],
        "named": named,
        "folder": folder,
        "environment": sorted(pair for pair in os.environ.items() if pair[0] not in _OF_NO_ACCOUNT),
        "terminals": [_terminal(number) for number in range(3)],
    }
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _values(word: str) -> Iterator[str]:
    """A word, and what may be the value of an option in it: `--vocab=FILE`, `-mFOLDER`."""
    yield word
    if word.startswith("-"):
        yield word.partition("=")[2] if word.startswith("--") else word[2:]


def _named(word: str, now: int) -> list[int] | None:
    """What the system tells of the file that a word names, None where it names none.

    `OSError` for what can change and not be told by that.
    """
    try:
        status = os.stat(os.path.expanduser(word))
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return [status.st_ino]
    if not stat.S_ISREG(status.st_mode) or not settled(status, now):
        raise OSError
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _terminal(number: int) -> list[int] | None:
    """The width and height of the terminal behind a stream, None where there is none."""
    try:
        return list(os.get_terminal_size(number)) if os.isatty(number) else None
    except OSError:
        return []


def _still_true(entry: Entry) -> dict[str, Any] | None:
    """What an entry holds, where everything is as it was when that was printed."""
    printed, witnessed = entry.part(_PRINTED).values, entry.part(WITNESSES).values
    home = folder_here(*printed["model"])
    if home is None or _about(home) != printed["about"]:
        return None
    if Witnesses(home).together(witnessed["names"]) != witnessed["together"]:
        return None
    return dict(printed)


def _about(home: Path) -> str:
    """Model and machine: what is a setting of the environment is in the key."""
    around = surroundings()
    around |= {"settings": "", "threads": around["threads"][:1]}
    return hashlib.sha256(repr([os.path.abspath(home), look_into(home), around]).encode()).hexdigest()


def _print_again(printed: dict[str, Any], made_at: float) -> int:
    streams.guard()
    try:
        for number, text in printed["chunks"]:
            stream = sys.stdout if number == 1 else sys.stderr
            stream.buffer.write(text.encode("utf-8", "surrogateescape"))
            stream.buffer.flush()
        if not printed["told"]:
            day = time.strftime("%Y-%m-%d", time.localtime(made_at))
            streams.say(
                f"note: from the cache: printed on {day}, nothing that it was made of has changed since; "
                "ATTNSCOPE_CACHE=off computes it anew"
            )
    except NobodyReadsError as error:
        return error.exit_code
    except AttnscopeError as error:
        streams.say(f"attnscope: {error}")
        return error.exit_code
    return 0


def wanted() -> bool:
    """Whether what this run prints may be kept."""
    return _run is not None


def made_with(memory: "Memory", names: "Sequence[str] | None", *, told: bool = False) -> None:
    """What is printed answers one question, and is made with this; None where that is not certain.

    `told` says that what is printed says itself that it is from the cache, or that nobody wants to know.
    """
    if _run is not None and names is not None:
        _run.made, _run.told = (memory, names), told


def forget() -> None:
    """What this run does is more than print."""
    global _run
    _run, streams.copied = None, None


def keep(code: int) -> None:
    """At the end of a run, keep what it printed; where that fails, there is nothing to tell."""
    run, copied = _run, streams.copied
    forget()
    if code or run is None or run.made is None or copied is None or not copied.whole:
        return
    memory, made = run.made
    try:
        names = all_in_use(made, run.began)
        if names is None or look_into(memory.home) != memory.folder or _holds_folders(memory.home):
            return
        values = {
            "model": list(memory.named),
            "about": _about(memory.home),
            "chunks": copied.chunks(),
            "told": run.told,
        }
        witnessed = {"names": names, "together": Witnesses(memory.home).together(names)}
        run.store.put(run.key, {_PRINTED: Part(values), WITNESSES: Part(witnessed)})
    except (OSError, ValueError):
        return


def _holds_folders(home: Path) -> bool:
    """Whether a word of the question names a folder that is not the model's."""
    named: Iterable[str] = (word for each in sys.argv[1:] for word in _values(each) if os.path.isdir(word))
    return any(not os.path.samefile(folder, home) for folder in named)
