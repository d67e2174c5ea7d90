"""The side file: what could not be measured, one JSON object a line, in the order of the corpus."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnscope.session.corpus.measuring.chunk_file import Measured
from attnscope.session.corpus.run.folder import ASIDE, Folder, stream_whole


def write_aside(folder: Folder, chunks: Iterable[Measured]) -> Path:
    """Where it stands: place, reason and text of each; an empty file where nothing was set aside."""
    place = folder.path / ASIDE

    def write(file: Any) -> None:
        for chunk in chunks:
            for each in chunk.set_aside:
                file.write((json.dumps(asdict(each), ensure_ascii=False) + "\n").encode("utf-8", "replace"))

    stream_whole(place, write)
    return place
