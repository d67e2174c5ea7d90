"""What the cache holds for one question: found by a key over all that the answer depends on.

Neither torch nor transformers is imported here. Where nothing is held (`NotKeptError`, None), or an entry is
damaged and dropped, the answer is computed.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.model.source import digests
from attnscope.model.source.here import folder_here
from attnscope.session.cache.entry import FORMAT, DamagedEntryError, Entry, Part
from attnscope.session.cache.store import Store, place
from attnscope.session.cache.witnesses import Witnesses, surroundings

if TYPE_CHECKING:  # the printed answers are looked at before any of these is imported
    from attnscope.session.listener import Listener
    from attnscope.session.request import Inputs, ModelRequest
    from attnscope.session.wanted import Wanted

_NO_MODEL_ALONE = "adapter_config.json"
WITNESSES = "witnesses"
_MANY = 200  # files; such a folder is no model's alone
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".gguf"}


@dataclass(frozen=True)
class Folder:
    """A folder at one moment: `read` are its files with their SHA-256, `weights` and `others` only named."""

    read: tuple[tuple[str, str], ...]
    weights: tuple[str, ...]
    others: tuple[str, ...]


def look_into(folder: Path) -> Folder | None:
    """What is in the folder; None where it cannot be read, or there are no weights."""
    read, weights, others = [], [], []
    try:
        names = sorted(os.listdir(folder))
        for name in names if len(names) <= _MANY else ():
            path = folder / name
            if not path.is_file():
                others.append(name)
            elif path.suffix in _WEIGHTS:
                weights.append(name)
            else:
                read.append((name, digests.sha256(path)))
    except OSError:
        return None
    return Folder(tuple(read), tuple(weights), tuple(others)) if weights else None


class NotKeptError(Exception):
    """What is asked for is not kept, or not any more: it has to be computed."""


class Memory:
    """The part of the cache that is about one model, one text and one kind of attention.

    `since` is when the question was put, `before` what stood for its weights before any was read, `named` how
    the model was called, with its revision.
    """

    def __init__(
        self, store: Store, home: Path, folder: Folder, question: dict[str, Any], listener: "Listener"
    ) -> None:
        self.store, self.home, self.folder, self.listener = store, home, folder, listener
        self._question, self._complained = question, False
        self._witnesses = Witnesses(home)
        self.since = time.time_ns()
        self.before: dict[str, str | None] = {}
        self.named: tuple[str | None, str | None] = (
            question["model"]["model"],
            question["model"]["revision"],
        )
        self.witnessed: set[str] = set()  # with which all that was found here was made

    def key(self, *what: Any) -> str:
        """The key under which something of this model and text is kept; `what` says which."""
        folder = self.folder
        return _hashed([self._question, folder.read, folder.weights, folder.others, *what])

    def part(self, name: str, *what: Any) -> tuple[Part, str, float]:
        """One part of what is kept, its hash, and when it was made; every byte of it was checked."""
        key = self.key(*what)
        try:
            with suppress(KeyError):
                entry = self.store.get(key)
                if entry is not None:
                    with entry:
                        if self.holds(entry):
                            self.witnessed |= set(entry.part(WITNESSES).values["names"])
                            return entry.part(name), entry.digest(name), entry.made_at
        except DamagedEntryError as error:
            self.spoilt(key, error)
        except OSError as error:
            self.complain(f"cannot be read: {error.strerror or error}")
        raise NotKeptError

    def holds(self, entry: Entry, witnesses: Witnesses | None = None) -> bool:
        """Whether all that it was made with still is what it was, when these witnesses looked."""
        witnessed = entry.part(WITNESSES).values
        return bool((witnesses or self._witnesses).together(witnessed["names"]) == witnessed["together"])

    def about_to_read(self) -> None:
        """Nothing is kept, and the model is read next: note what its weights can be known by."""
        for name in self.folder.weights:
            with suppress(OSError):
                self.before[name] = digests.unread(self.home / name, lasting=True)

    def spoilt(self, key: str, error: DamagedEntryError) -> None:
        """Say what is wrong with an entry, and forget it."""
        self.complain(f"holds something else than was written of this text ({error})")
        self.store.drop(key)

    def complain(self, what: str) -> None:
        """Say once what is wrong with the cache; the answer does not suffer."""
        if not self._complained:
            self._complained = True
            self.listener.notice(f"the cache {self.store.place.folder} {what}: computed without it")


def remember(
    request: "ModelRequest", inputs: "Inputs", wanted: "Wanted", listener: "Listener"
) -> Memory | None:
    """What is kept of such a question; None where nothing can be: off, or of a kind that is not kept.

    Not kept is what reads files beside the model's (pictures, sounds, a vocabulary), chats, whose template
    may write the date, what the model goes on to write, models that bring code of their own, have an adapter
    or are spread over devices, and a model that is not found without asking anybody.
    """
    where = place()
    others = inputs.sensed or inputs.goes_on or inputs.vocab is not None
    others = others or request.device_map is not None or inputs.conversation is not None
    if where is None or others or request.trust_remote_code or request.adapter is not None:
        return None
    home = folder_here(request.model, request.revision)
    folder = None if home is None else look_into(home)
    if home is None or folder is None or _NO_MODEL_ALONE in dict(folder.read):
        return None
    return Memory(Store(where), home, folder, _question(request, inputs, wanted), listener)


def _question(request: "ModelRequest", inputs: "Inputs", wanted: "Wanted") -> dict[str, Any]:
    """Everything that a question says, but for the layers and heads that it is about."""
    model = {name: getattr(request, name) for name in request.__dataclass_fields__}
    model["model"] = request.model or os.environ.get("ATTNSCOPE_MODEL") or None
    attention = {name: getattr(wanted, name) for name in ("kind", "tower", "block", "route")}
    return {
        "format": FORMAT,
        "surroundings": surroundings(),
        "model": model,
        "inputs": asdict(inputs),
        "attention": attention,
    }


def _hashed(values: Any) -> str:
    plain = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode("ascii")).hexdigest()
