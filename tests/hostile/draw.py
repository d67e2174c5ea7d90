"""Values that programs stumble over: texts, numbers, lists, names, JSON values, and ways to damage bytes."""

import io
import json
import zipfile
from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

PLAIN = (
    "I was watching the [MASK] when it opened.",
    "I was watching the door when [MASK] opened.",
    "The black cat is sleeping in the green garden.",
    "the dog saw the door",
    "Hello, world",
    "a",
    "I was watching the",
)
ODD = {
    "controls": "".join(map(chr, (*range(1, 9), 11, 12, *range(14, 32), 127))),
    "c1": "".join(map(chr, range(0x80, 0xA0))),
    "bidi": "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "tags": "".join(map(chr, (0xE0001, *range(0xE0041, 0xE0052), 0xE007F))),
    "invisible": "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u3164\u180e",
    "blanks": " \t\n\r\u00a0\u2028\u2029\u3000\u2003\u1680\u205f",
    "surrogates": "\udc80\udc9b\udcff\udce2\udc80\udcae",
    "private": "\ue000\uf8ff\U000f0000\U0010fffd\ufffe\U0001ffff\u0378",
    "combining": "e\u0301\u0323a\u030a" + "\u0300" * 20,
    "emoji": "👩\u200d👧🏽🏴\U000e0067\U000e0062\U000e007f🇩🇪❤\ufe0f😀",
    "wide": "我喜欢猫。日本語、한국어ｆｕｌｌ１２",
    "right to left": "القطة على الباب שלום",
    "markup": "[/b][red]x[/red][link=file:///]y[/link]{}{0}%s%n$HOME`id`<b>&amp;<script>",
    "special": "[CLS][SEP][PAD][UNK]<s></s><pad><mask><unk>[MASK]<|endoftext|><image>##ing▁Ġ",
    "escape": "\x1b[31m\x1b]0;title\x07\x1b]8;;file:///etc\x07\x9b31m\x1bP\x1b\\",
    "quotes": "'\"\\`´‘’“”«»",
}
NUMBERS = (
    "0", "1", "-1", "2", "3", "-0", "00", "+3", " 3 ", "3.0", "1.5", "-1.5", "1e3", "1e-40", "1e-400",
    "1e400", "1e308", "-1e308", "nan", "NaN", "inf", "-inf", "infinity", "0x10", "1_000", "１２", "²", "٣",
    "½", "Ⅷ", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "9" * 30, "-" + "9" * 30, "9" * 5000, "", " ", "-", "--", "1,2", "1;2", "true",
    "None", "0.0000001", "4294967296", "100000000", "12345",
)  # fmt: skip
LISTS = (
    "all", "ALL", "0,1", "0,3,7", "4-8", "0-2", "2-0", "0-99999999999", "-1", "-1--3", "-", ",", "0,,1", "0,",
    "1-", "-1,-1", "0,0,0", "0-1-2", "a", "0..3", "*", "0 1", "--1", "all,0", "1e1", "0-0", "-4-0",
    ",".join(["0"] * 3000),
)  # fmt: skip
NAMES = (
    "demo", "demo-causal", "demo-translate", "DEMO", "demo/", "./demo", "no/model", "nobody/at/all", "~",
    "~nobodyatall/x", "", " ", ".", "..", "/", "/dev/null", "/etc/passwd", "/proc/self", "/proc/self/mem",
    "a" * 300, "a/" * 200, "x/y@main", "https://huggingface.co/a/b", "hf://a/b", "file:///etc/passwd",
    "bert-base-uncased", "-m", "--layer", "con", "a\nb", "é", "demo\u202e", "../demo", "models--a--b", "a--b",
    "a..b", "-", "a b", "%2e%2e", "$HOME", "C:\\x",
)  # fmt: skip
STEMS = (
    "made", "a b", "é", "我", "\u202e", "\udc80", "\x1b[31m", "a\nb", "-", "--json", "*", "~",
    "~nobodyatall/x", "a" * 240, "a" * 252, "a" * 300, ".hidden", "con", "%s", "$HOME", "[/b]",
    "sub/dir/made", "sub/../made", "./made", "folder/made", "file/made", "missing/../made",
    "a/" * 100 + "made", "locked/made", "link", "dangling", "loop", "/dev/null/made", "/proc/made",
    "/sys/made", "/dev/full",
)  # fmt: skip
SUFFIXES = (
    ".png", ".svg", ".pdf", ".npz", ".csv", ".json", ".PNG", ".Json", "", ".", ".bmp", ".png.", ".png ",
    ".tar.gz", ".html", ".json\u202e",
)  # fmt: skip
COUNTS = (
    0, 1, -1, 2, 3, 5, 7, 13, 64, 1000, 100000, 2**31, 2**31 - 1, 2**63, -(2**31), 0.5, 1e30, float("nan"),
    10**30,
)  # fmt: skip
JSONS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"),
    2**31, 2**31 - 1, 2**63, 2**63 - 1, 2**64, -(2**63), 10**30, 100000, 1000000000, "", "x", " ", "0", "nan",
    "auto", "../..", "/etc/passwd", "a" * 5000, "\x1b[31m", "\u202e", "\udc80", "\ud83d", "\x00", "é", "None",
    "cuda", "os.system", [], {}, [[]], [{}], {"a": 1}, {"": None}, [None], [0], [1, 2], [-1], ["x"], [1.5],
    [True], [[1, 2], [3]], {"0": 0}, {"x": {"x": {}}}, [0] * 1000,
)  # fmt: skip


def chance(rng: Random, share: float) -> bool:
    return rng.randrange(1000) >= 1000 * (1 - share)  # a simpler case has a smaller number, and none of it


def text(rng: Random) -> str:
    """A text that may hold anything which an argument can hold."""
    made = rng.choice(
        (_plain, _plain, _sprinkled, _sprinkled, _only_odd, _any_characters, _long, _blank, _words_of_odd)
    )(rng)
    return made.replace("\0", "")


def _plain(rng: Random) -> str:
    return rng.choice(PLAIN)


def _sprinkled(rng: Random) -> str:
    """A plain text with odd characters put in anywhere."""
    characters = list(rng.choice(PLAIN))
    for _ in range(rng.randint(1, 6)):
        characters.insert(rng.randint(0, len(characters)), odd(rng))
    return "".join(characters)


def _only_odd(rng: Random) -> str:
    return rng.choice(list(ODD.values()))


def _any_characters(rng: Random) -> str:
    ranges = ((1, 127), (128, 0x2FF), (0x300, 0xD7FF), (0xDC80, 0xDCFF), (0xE000, 0x10FFFF))
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 40)))


def _long(rng: Random) -> str:
    unit = rng.choice(["door ", "a", "[MASK] ", odd(rng), "\u0301", "了", "x " + odd(rng)])
    return unit * rng.choice([20, 60, 200, 1000, 10000])


def _blank(rng: Random) -> str:
    return "".join(rng.choice(ODD["blanks"] + ODD["invisible"]) for _ in range(rng.randint(0, 6)))


def _words_of_odd(rng: Random) -> str:
    return " ".join(odd(rng) for _ in range(rng.randint(1, 12)))


def odd(rng: Random) -> str:
    """One odd character, or a whole run of a sort."""
    sort = rng.choice(list(ODD.values()))
    return sort if chance(rng, 0.2) else rng.choice(sort)


def number(rng: Random) -> str:
    return rng.choice(NUMBERS)


def value(rng: Random) -> str:
    """Anything that may be typed behind an option."""
    return rng.choice((number, number, text, lambda r: r.choice(LISTS), lambda r: r.choice(NAMES)))(rng)


def path(rng: Random) -> str:
    """A path that may be anything, but is nowhere where it could do harm."""
    if chance(rng, 0.15):
        return rng.choice(["", ".", "/", "/dev/null", "/dev/full", "/proc/self/mem", "folder"])
    return rng.choice(STEMS) + rng.choice(SUFFIXES)


# JSON


def changed_json(rng: Random, document: Any, keys: tuple[str, ...] = ()) -> Any:
    """`document` with one value somewhere in it changed, taken out, put in or doubled.

    `keys` are names that matter: half the time one of them is set, at the top or in a part of the document.
    """
    document = json.loads(json.dumps(document))
    if keys and chance(rng, 0.6):
        parts = [part for part in _parts(document) if isinstance(part, dict)] or [{}]
        part = parts[0] if chance(rng, 0.7) else rng.choice(parts)
        there = [key for key in part if key in keys]
        key = rng.choice(there) if there and chance(rng, 0.6) else rng.choice(keys)
        part[key] = (
            _of_its_sort(rng, part[key]) if key in part and chance(rng, 0.5) else json_value(rng, document)
        )
        return document
    parts = [part for part in _parts(document) if part]
    if not parts or chance(rng, 0.03):
        return json_value(rng, document)
    part = rng.choice(parts)
    place = rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
    action = rng.choice(("set", "set", "set", "delete", "nudge", "add", "double"))
    if action == "set":
        part[place] = json_value(rng, document)
    elif action == "delete":
        del part[place]
    elif action == "nudge":
        part[place] = _nudged(rng, part[place])
    elif action == "add" and isinstance(part, dict):
        part[text(rng)[:40]] = json_value(rng, document)
    elif isinstance(part, list):
        part.insert(place, part[place])
    return document


def _of_its_sort(rng: Random, old: Any) -> Any:
    """Another value that a reader of `old` takes for one of the right sort."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | float):
        return rng.choice(COUNTS)
    if isinstance(old, str):
        known = ["", "x", "auto", "gelu_new", "bert", "llama", "BertModel", "[UNK]", "float64"]
        return rng.choice([*known, old + "x", text(rng)[:60]])
    return deepcopy(rng.choice([[], {}, None, [0], {"0": "x"}, [old], {"a": old}]))


def json_value(rng: Random, document: Any = None) -> Any:
    if document is not None and chance(rng, 0.1):
        return deepcopy(rng.choice([*_parts(document), document]))
    return deepcopy(rng.choice(JSONS)) if chance(rng, 0.85) else text(rng)[:200]


def _parts(document: Any) -> list[Any]:
    """Every object and array of a document, itself first; of long arrays only the first and last entries."""
    if not isinstance(document, dict | list):
        return []
    inner = list(document.values()) if isinstance(document, dict) else document
    inner = inner if len(inner) <= 60 else inner[:30] + inner[-30:]
    return [document, *(part for each in inner for part in _parts(each))]


def _nudged(rng: Random, old: Any) -> Any:
    if isinstance(old, bool) or old is None:
        return not old
    if isinstance(old, int | float):
        return rng.choice([old + 1, old - 1, -old, old * 2, old * 1000, old / 3, str(old), [old], float(old)])
    if isinstance(old, str):
        return rng.choice([old + "x", old[:-1], old.upper(), old + "\u202e", [old], text(rng)[:60]])
    return rng.choice([None, [old], len(old), str(old)[:100]])


def json_bytes(rng: Random, document: Any) -> bytes:
    """The document as a file, now and then in an odd encoding or with what JSON does not allow."""
    written = json.dumps(document, ensure_ascii=chance(rng, 0.5)).encode("utf-8", "surrogatepass")
    if chance(rng, 0.9):
        return written
    return rng.choice(
        [
            b"\xef\xbb\xbf" + written,
            written.decode("utf-8", "replace").encode("utf-16"),
            written.replace(b'"', b"'"),
            b"[" * 100000 + b"]" * 100000,
            b'{"a":' * 50000 + b"1" + b"}" * 50000,
            written[:-1] + b",}",
            b"",
            b" ",
            b"null",
            b"\x00" * 100,
            b"9" * 5000,
            written + written,
            b"\xff\xfe" + written,
        ]
    )


# bytes


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive, the same at any time of the day."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return made.getvalue()


def changed_bytes(rng: Random, content: bytes) -> bytes:
    """`content` with some of it flipped, cut off, put in, moved or blanked; headers suffer most."""
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        if not made:
            return bytes(made)
        action = rng.randrange(7)
        reach = len(made) if chance(rng, 0.5) else min(len(made), 64)
        place = rng.randrange(reach)
        if action == 0:
            made[place] ^= 1 << rng.randrange(8)
        elif action == 1:
            made[place] = rng.choice([0, 255, 127, 128, 1])
        elif action == 2:
            del made[place:]
        elif action == 3:
            made[place:place] = rng.randbytes(rng.choice([1, 4, 100]))
        elif action == 4:
            del made[place : place + rng.choice([1, 2, 4, 1000])]
        elif action == 5:
            made[place : place + 4] = rng.choice(
                [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"]
            )
        else:
            made[place : place + 16] = made[:16]
    return bytes(made)
