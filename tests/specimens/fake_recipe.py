"""A recipe without a model, for the engine alone: it hands texts back, and some texts end a process."""

import os
import pickle
import signal
from dataclasses import dataclass, replace
from pathlib import Path

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Chunk


@dataclass(frozen=True)
class FakeRecipe:
    """`notes` is where its processes leave their number; it opens nothing where `refuses` says why."""

    notes: Path
    refuses: str = ""
    breaks: bool = False
    device: str = "cpu"

    def on(self, device: str) -> "FakeRecipe":
        return replace(self, device=device)

    def open(self) -> "FakeRecipe":
        if self.refuses:
            raise InputError(self.refuses)
        if self.breaks:
            os._exit(3)
        (self.notes / str(os.getpid())).write_text(self.device)
        return self

    def measure(self, chunk: Chunk) -> bytes:
        print("what a library prints must not come between")
        read = [text for text in chunk.texts if text.number not in chunk.deadly]
        for text in read:
            once = self.notes / f"once-{text.number}"
            if text.text == "dies" or (text.text == "dies once" and not once.exists()):
                once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if text.text == "bug":
                raise ZeroDivisionError("a mistake of ours")
            if text.text == "refused":
                raise InputError("the model cannot read anything")
        return pickle.dumps((chunk.number, [text.text for text in read], sorted(chunk.deadly)))
