"""What files are called: those that nobody named, those of many texts, and those of one head each."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope import incoming
from attnscope.session.question import HEAD, LAYER

if TYPE_CHECKING:
    from attnscope.results import HeadWeights

OWN_FOLDER = Path("outputs")
LINE = "{line}"  # in the name of a file, for its number
_DIGITS = 3  # of a line, at least
_LONGEST, _DIGEST = 32, 6


def numbered(target: Path, number: int, last: int) -> Path:
    """`x.png` as `x-007.png`, or the number where the name has `{line}`; as many digits as `last` has."""
    digits = f"{number:0{max(_DIGITS, len(str(last)))}}"
    if LINE in target.name:
        return target.with_name(target.name.replace(LINE, digits))
    return target.with_name(f"{target.stem}-{digits}{target.suffix}")


def is_of_each_line(target: Path) -> bool:
    """Whether a file for each of many texts is meant: `x-{line}.png`."""
    return LINE in target.name


def of_head(target: Path, layer: int, head: int) -> Path:
    return target.with_name(target.name.replace(LAYER, str(layer)).replace(HEAD, str(head)))


def own_place(command: str, head: "HeadWeights", asked: Sequence[object], media: Sequence[Path]) -> Path:
    """Where a picture goes that nobody named: `outputs/tsne-demo-L3-H11-the-door-opened-3f9a1c.png`.

    Its end stands for all that was read and `asked`: the same input has the same name on every machine, and
    no other input is written over it.
    """
    from attnscope.render.kit.words.header import own_name

    origin, texts = head.provenance, (*head.query_tokens.texts, *head.key_tokens.texts)
    parts = [command, _plain(own_name(origin.model)) or "model"]
    parts += [] if head.kind == "encoder" else [str(head.kind)]
    parts += [f"L{head.layer}", f"H{head.head}", slug(texts[0] if texts else "")]
    weights = (origin.model if origin.digest is None else "", origin.source, origin.adapter, origin.dtype)
    read = (texts, origin.token_ids, head.query_tokens.ids, head.key_tokens.ids)
    place = (head.tower, head.kind.value, head.layer, head.head, head.block)
    identity = json.dumps(
        [weights, origin.kernel, origin.route, read, place, [repr(setting) for setting in asked]]
    )
    digest = hashlib.sha256(identity.encode())
    for file in media:
        digest.update(incoming.content(file))
    return OWN_FOLDER / f"{'-'.join(part for part in parts if part)}-{digest.hexdigest()[:_DIGEST]}.png"


def slug(text: str) -> str:
    """The first words of a text in letters that every file name takes: `i-was-watching-the-door-when`."""
    words = _plain(unicodedata.normalize("NFKD", text).casefold()).split("-")
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        kept = longer
    return kept


def _plain(text: str) -> str:
    plain = "".join(letter for letter in text if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9_.]+", "-", plain).strip("-.")
