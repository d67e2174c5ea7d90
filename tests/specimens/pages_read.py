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


def weights_in(file: Path) -> np.ndarray:
    """What the page holds of all heads: layer, head, query, key; NaN where a pair is masked."""
    (reading,) = document(file)["readings"]
    keys = reading["keys"] or reading["queries"]
    shape = 2, len(reading["heads"]), len(reading["queries"]["names"]), len(keys["names"])
    layers = []
    for name in reading["blocks"]:
        high, low = np.frombuffer(block(file, name), np.uint8).reshape(shape).astype(int)
        codes = high * 256 + low
        layers.append(np.where(codes == 0, np.nan, ((codes - 1) / 65534) ** 2))
    return np.array(layers)
