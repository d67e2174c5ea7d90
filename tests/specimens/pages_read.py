"""Pages read again without a browser: their document, their blocks, and the weights that stand in these."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np


def document(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="document">(.*?)</script>', text, re.DOTALL)[1])


def block(file: Path, name: str) -> bytes:
    """What stands under a name in a page."""
    packed = re.search(rf'id="{name}">([^<]*)', file.read_text(encoding="utf-8"))[1]
    return zlib.decompress(base64.b64decode(packed))


def codes_in(file: Path, reading: dict[str, Any]) -> np.ndarray:
    """Codes by layer, head, query and key: of 16 bits the high bytes of all heads stand in one block."""
    text = file.read_text(encoding="utf-8")
    queries, keys = (len((reading[side] or reading["queries"])["names"]) for side in ("queries", "keys"))
    lines = [
        line
        for name in reading["blocks"]
        for line in re.search(rf'id="{name}">([^<]*)', text)[1].strip().split("\n")
    ]
    found = np.array([list(zlib.decompress(base64.b64decode(line))) for line in lines])
    if reading["depth"] == 2:
        high = np.frombuffer(block(file, reading["small"]["block"]), np.uint8).astype(int)
        found = found + 256 * high.reshape(found.shape)
    return found.reshape(len(reading["layers"]), -1, keys, queries).swapaxes(2, 3)


def weights_in(file: Path) -> np.ndarray:
    """What the page holds of all heads: layer, head, query, key; NaN where a pair is masked."""
    (reading,) = document(file)["readings"]
    codes = codes_in(file, reading)
    return np.where(codes == 0, np.nan, np.sin(np.pi / 2 * (codes - 256) / 65279) ** 2)


class Page(HTMLParser):
    """The tags of a page with their attributes in their order, and the text between them but for styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def image(self) -> bytes:
        (source,) = (attributes["src"] for tag, attributes in self.tags if tag == "img")
        assert source is not None
        return base64.b64decode(source.removeprefix("data:image/png;base64,"))
