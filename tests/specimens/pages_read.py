"""Pages read again without a browser: their document, their blocks, and the weights that stand in these."""

import base64
import json
import re
import zlib
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


def head_of(file: Path, names: list[str], head: int, queries: int) -> np.ndarray:
    """Codes of one head by query and key, of the blocks of its layer: of 16 bits where there are two."""
    text = file.read_text(encoding="utf-8")
    lines = [re.search(rf'id="{name}">([^<]*)', text)[1].strip().split("\n") for name in names]
    planes = [np.frombuffer(zlib.decompress(base64.b64decode(each[head])), np.uint8) for each in lines]
    codes = sum(plane.astype(int) * 256**i for i, plane in enumerate(reversed(planes)))
    return codes.reshape(-1, queries).T


def weights_in(file: Path) -> np.ndarray:
    """What the page holds of all heads: layer, head, query, key; NaN where a pair is masked."""
    (reading,) = document(file)["readings"]
    heads, queries = range(len(reading["heads"])), len(reading["queries"]["names"])
    codes = np.array([[head_of(file, names, j, queries) for j in heads] for names in reading["blocks"]])
    return np.where(codes == 0, np.nan, np.sin(np.pi / 2 * (codes - 256) / 65279) ** 2)
