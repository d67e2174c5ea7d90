"""Compressed files: what they are by name and by their first bytes, and what is left of a damaged one."""

import bz2
import gc
import gzip
import io
import lzma
from collections.abc import Callable

import pyarrow
import pytest

from attnscope.errors import InputError
from attnscope.session.corpus.packed import (
    BrokenArchive,
    Packing,
    packing_by_name,
    packing_by_start,
    unpacked,
    unpacked_name,
)

LINES = [b"line %d of the text\n" % (i * i) for i in range(20_000)]
CONTENT = b"".join(LINES)


PACKED: dict[Packing, Callable[[bytes], bytes]] = {
    Packing.GZIP: gzip.compress,
    Packing.BZIP2: bz2.compress,
    Packing.XZ: lzma.compress,
    Packing.ZSTANDARD: lambda content: pyarrow.Codec("zstd").compress(content, asbytes=True),
}
every = pytest.mark.parametrize("packing", list(Packing))


def read(packing: Packing, packed: bytes) -> tuple[list[bytes], str]:
    """The lines that come out, and what is said to be broken."""
    lines = []
    with unpacked(packing, io.BytesIO(packed)) as file:
        try:
            for line in file:
                lines.append(line)
        except BrokenArchive as error:
            return lines, str(error)
    return lines, ""


@every
def test_what_was_compressed_is_read_as_it_was_and_what_is_appended_too(packing: Packing) -> None:
    packed = PACKED[packing](CONTENT)
    assert len(packed) < len(CONTENT) / 2
    assert read(packing, packed) == (LINES, "")
    assert read(packing, packed + PACKED[packing](b"more\n")) == ([*LINES, b"more\n"], "")


def test_nothing_is_said_past_python_when_an_archive_has_been_read(capfd: pytest.CaptureFixture[str]) -> None:
    for packing, pack in PACKED.items():
        packed = pack(CONTENT)
        read(packing, packed)
        read(packing, packed[: len(packed) // 2])
    gc.collect()
    assert capfd.readouterr() == ("", "")


@every
def test_an_archive_that_is_cut_short_gives_what_stands_before_and_says_so(packing: Packing) -> None:
    packed = PACKED[packing](CONTENT)
    lines, why = read(packing, packed[: len(packed) // 2])
    assert lines == LINES[: len(lines)]
    assert "it ends too early" in why
    assert len(lines) < len(LINES)


@every
def test_what_is_no_such_archive_is_damaged_from_its_first_byte(packing: Packing) -> None:
    lines, why = read(packing, b"plain text, and no archive\n" * 1000)
    assert lines == []
    assert "after 0 bytes of text it is damaged" in why


@pytest.mark.parametrize("packing", [Packing.GZIP, Packing.BZIP2, Packing.XZ])
def test_a_bit_that_flipped_is_found_by_the_archives_own_sum(packing: Packing) -> None:
    packed = bytearray(PACKED[packing](CONTENT))
    packed[len(packed) // 2] ^= 8
    _, why = read(packing, bytes(packed))
    assert "it is damaged" in why
    assert "what stands before may be wrong, too" in why


def test_names_and_first_bytes_say_what_a_file_is_packed_by() -> None:
    names = {"a.jsonl.gz": Packing.GZIP, "a.TXT.ZST": Packing.ZSTANDARD, "a.xz": Packing.XZ, "a.txt": None}
    for name, packing in names.items():
        assert packing_by_name(name) is packing
    assert unpacked_name("a.b.jsonl.gz") == "a.b.jsonl"
    assert unpacked_name("a.txt") == "a.txt"
    for packing, pack in PACKED.items():
        assert packing_by_start(pack(CONTENT)) is packing
    assert packing_by_start(b"plain") is None


@pytest.mark.parametrize("name", ["a.zip", "texts.tar.gz", "a.tgz", "a.jsonl.lz4"])
def test_an_archive_of_another_kind_is_named_and_what_is_possible(name: str) -> None:
    with pytest.raises(InputError, match=r"it is (a zip archive|an archive of files|compressed by lz4)"):
        unpacked_name(name)
