"""Pictures and sounds: odd ones that are sound, damaged ones, and files that are neither."""

import io
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from .. import draw
from ..commands import name_of, others, parameters
from ..invocation import Invocation
from ..material import PICTURES, SOUNDS, Material

PRETENDED = (b"", b"\0" * 100, b"I am a text", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff",
b"RIFF\0\0\0\0WAVE", b"fLaC", b"OggS", b"%PDF-1.4",
             b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%!PS\n(x) run", b"PK\x03\x04")  # fmt: skip

PLACES = ("r1c1", "r99c99", "r-1c0", "0.20s", "99s", "nan", "-1s", "mean", "1", "r²c1")
ELSEWHERE = (
    "missing.png", "", ".", "/dev/null", "/dev/zero", "/etc/passwd", "-", "http://127.0.0.1/a.png", "a" * 300,
    "~",
)  # fmt: skip


def make(rng: Random, here: Path, material: Material) -> Invocation:
    name = rng.choice([*PICTURES, *SOUNDS, "demo", "demo-caption", "demo-speech"])
    model = name if name.startswith("demo") else str(material.folder(name))
    sees = name in (*PICTURES, "demo-caption") or (name == "demo" and draw.chance(rng, 0.5))
    option = (
        ("--image" if sees else "--audio") if draw.chance(rng, 0.95) else rng.choice(["--image", "--audio"])
    )
    file = _file(rng, here, material, option == "--image")
    command = rng.choice([name for name, options in parameters().items() if _takes(options, option)])
    beside = name in ("clip", "llava", "gemma3", "whisper", "demo-speech", "demo-caption")
    texts = ["what is in the picture ?"] if beside and draw.chance(rng, 0.5) else []
    argv = [command, *texts, option, file, "-m", model]
    argv += ["--word", rng.choice(["1", "r1c1", "0.1s"])] if command == "compare" else []
    asked = [each for each in parameters()[command] if name_of(each) in ("--query", "--layer", "--head")]
    for each in asked if draw.chance(rng, 0.5) else ():
        argv += [
            each.opts[0],
            rng.choice(PLACES) if name_of(each) == "--query" else rng.choice(["0", "1", "-1"]),
        ]
    return Invocation((*argv, *others(rng, command, rng.choice([0, 0, 1, 2]))))


def _takes(options: Iterable[Any], name: str) -> bool:
    return any(name in option.opts for option in options)


def _file(rng: Random, here: Path, material: Material, picture: bool) -> str:
    """The name of a file that was put into the current folder."""
    suffixes = (
        (".png", ".jpg", ".gif", ".bmp", ".tiff", ".webp") if picture else (".wav", ".flac", ".ogg", ".mp3")
    )
    sound = sorted(file for file in material.media().iterdir() if file.suffix in suffixes)
    origin = rng.choice(sound)
    name = rng.choice(["given", "é", "\u202e", "a b", "\x1b[31m", "[b]"]) + (
        origin.suffix if draw.chance(rng, 0.9) else rng.choice(["", ".txt", ".png"])
    )
    target, sort = here / name, rng.randrange(10)
    if sort < 3:
        target.write_bytes(origin.read_bytes())
    elif sort < 7:
        target.write_bytes(draw.changed_bytes(rng, origin.read_bytes()))
    elif sort == 7:
        target.write_bytes(_lying_picture(rng) if picture else _lying_sound(rng))
    elif sort == 8:
        target.write_bytes(rng.choice(PRETENDED))
    else:
        return rng.choice(ELSEWHERE)
    return name


def _lying_picture(rng: Random) -> bytes:
    """A PNG whose header names any size, depth and colours."""
    width, height = (rng.choice([0, 1, 2, 40, 13000, 30000, 2**31 - 1, 2**32 - 1]) for _ in range(2))
    depth, colours, laced = rng.choice([1, 2, 8, 16, 7]), rng.choice([0, 2, 3, 4, 6, 9]), rng.choice([0, 1])
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, laced)
    body = zlib.compress(b"\0" * rng.choice([0, 100, 1000000]))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data) for kind, data in ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _lying_sound(rng: Random) -> bytes:
    """A WAV whose header names any channels, rate and depth."""
    body = rng.randbytes(20)[: rng.choice([0, 1, 3, 20])] * rng.choice([1, 800])
    channels, rate = rng.choice([0, 1, 2, 7, 65535]), rng.choice([0, 1, 100, 16000, 2**31, 2**32 - 1])
    bits = rng.choice([0, 1, 8, 16, 24, 32, 64, 65535])
    form = struct.pack(
        "<HHIIHH",
        rng.choice([0, 1, 3, 6, 7, 17, 65534]),
        channels,
        rate,
        rng.choice([0, 32000]),
        rng.choice([0, 2]),
        bits,
    )
    size = rng.choice([len(body), 0, 2**32 - 1])
    made = io.BytesIO()
    made.write(
        b"RIFF"
        + struct.pack("<I", rng.choice([36 + len(body), 0, 2**32 - 1]))
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + form
    )
    made.write(b"data" + struct.pack("<I", size) + body)
    return made.getvalue()
