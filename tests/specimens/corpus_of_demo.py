"""A small corpus under the bundled encoder: files, and an engine that opens the model once."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from attnscope.results import Corpus
from attnscope.session.listener import Listener, Quiet
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus.answer import CorpusQuestion, CorpusRecipe, corpus_of
from attnscope.verbs.corpus.engine import Finished, Split
from attnscope.verbs.corpus.folder import Folder
from attnscope.verbs.corpus.store import place_of

TEXTS = (
    "The door opened.", "A dog barks, and the old dog sleeps.", "", "She was watching the boat.",
    "It is late.", "the river and the bank", "Maria sat on the table and she slept.", "  ", "Go!",
    "The parrots fly to the bank.", "I was watching the door when it opened.", "They are not here.",
    "A boat flows.", "The dog was on the boat, it slept.",
)  # fmt: skip
REAL = [each for each in TEXTS if each.strip()]
MEASURES = "entropy,previous,evenness,special-tokens,same,pattern,moved,fixed"
WANTED = Wanted("0,2", "1,4,7")


class Hearing(Quiet):
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def notice(self, text: str) -> None:
        self.told.append(text)


@cache
def opened(recipe: CorpusRecipe) -> Any:
    import torch

    threads = torch.get_num_threads()
    try:
        return recipe.open()
    finally:
        torch.set_num_threads(threads)


def once_open(recipe: Any, splits: Iterable[Split], listener: Listener) -> Iterator[Finished]:
    """The engine of this process, which opens the same recipe once for all tests."""
    measurer = opened(replace(recipe, into=""))
    for split in splits:
        yield replace(measurer, folder=Folder(place_of(recipe.into))).measure(split)


def asked(file: Path, run: Path | str, **more: Any) -> CorpusQuestion:
    more.setdefault("measures", MEASURES)
    return CorpusQuestion((file,), run=run, workers=0, **more)


def measure(
    file: Path, run: Path | str, listener: Listener | None = None, engine: Any = once_open, **more: Any
) -> Corpus:
    return corpus_of(
        ModelRequest("demo"), asked(file, run, **more), WANTED, listener or Quiet(), None, engine
    )


def everything(run: Path) -> dict[str, bytes]:
    """All that a run has left but when it began."""
    files = (each for each in sorted(run.rglob("*")) if each.is_file() and each.name != "lock")
    return {str(each.relative_to(run)): each.read_bytes() for each in files if each.name != "manifest.json"}
