"""Where invocations run: the current folder, a home, room for temporary files, and the plain environment."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

QUIET = {
    "OMP_NUM_THREADS": "1",  # a process that is to be forked may have one thread
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
    "NO_COLOR": "1",
}


class Place:
    """Where the invocations of one worker run: the current folder, a home and room for temporary files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.current, self.home, self.temporary = root / "current", root / "home", root / "temporary"
        self.canaries, self.crash = root / "canaries", root / "crash"
        self.out, self.err = root / "out", root / "err"

    def clear(self) -> None:
        """Everything empty, as each invocation finds it."""
        self.go_on(self.current, self.home)

    def go_on(self, *emptied: Path) -> None:
        """Nothing printed yet and no temporary file; the current folder and home as they were left."""
        for folder in (*emptied, self.temporary, self.canaries):
            remove(folder)
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        for file in (self.out, self.err, self.crash):
            file.write_bytes(b"")

    def remember(self) -> None:
        """Put a copy of the current folder aside."""
        remove(self.root / "aside")
        subprocess.run(["cp", "-a", self.current, self.root / "aside"], check=True)

    def go_back(self) -> None:
        """The current folder as it was put aside, and everything else empty."""
        self.clear()
        self.current.rmdir()
        subprocess.run(["cp", "-a", self.root / "aside", self.current], check=True)

    def environment(self, changes: Iterable[tuple[str, str | None]]) -> dict[str, str]:
        plain = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "hub"),
            "ATTNSCOPE_DIGESTS": "off",  # no invocation leaves anything behind
            "TMPDIR": str(self.temporary),
            "MPLCONFIGDIR": str(self.root.parent / "fonts"),  # found once, kept
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            **QUIET,
        }
        for name, value in changes:
            if value is None:
                plain.pop(name, None)
            else:
                plain[name] = value
        return plain


def remove(folder: Path) -> None:
    """The folder gone, also where something in it may not be entered, or is somebody else's.

    Each owner takes away what is his: an administrator who may become another user need not be one who may
    change that user's files (a container that lacks CAP_FOWNER).
    """
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        for owner in _owners(folder) - {os.geteuid()}:
            _as_user(owner, folder)
        _empty(folder)
        shutil.rmtree(folder)


def _owners(folder: Path) -> set[int]:
    return {folder.stat().st_uid} | {(folder / path).lstat().st_uid for path in paths_in(folder)}


def _as_user(user: int, folder: Path) -> None:
    """Empty the folder in a process of that user."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresuid(user, user, user)
            _empty(folder)
        os._exit(0)
    os.waitpid(child, 0)


def _empty(folder: Path) -> None:
    """Take away what this user may take away."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                with contextlib.suppress(PermissionError):
                    os.chmod(inner, 0o777)  # so that the next owner can go in
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with contextlib.suppress(PermissionError):
                os.unlink(entry.path)


def paths_in(folder: Path) -> Iterable[str]:
    """Everything in a folder, by its path there; folders with a slash behind them."""
    for path, folders, files in os.walk(folder):
        for name in folders:
            yield os.path.relpath(os.path.join(path, name), folder) + "/"
        for name in files:
            yield os.path.relpath(os.path.join(path, name), folder)
