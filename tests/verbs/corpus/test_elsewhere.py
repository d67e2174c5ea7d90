"""A corpus elsewhere, or compressed, gives the numbers of the plain file, and no byte is asked for twice."""

import bz2
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import numpy as np
import pyarrow
import pytest
from hub_stand_in import hub_files
from pyarrow import parquet
from wire import Wire

from attnscope.errors import InputError
from attnscope.results import Corpus
from attnscope.verbs.corpus import splits
from attnscope.verbs.corpus.answer import CorpusQuestion, sources_of
from attnscope.verbs.corpus.engine import Text
from attnscope.verbs.corpus.source import (
    BrokenArchive,
    Packing,
    packing_by_name,
    packing_by_start,
    unpacked,
    unpacked_name,
)
from attnscope.verbs.corpus.splits import Plan, everything
from attnscope.verbs.corpus.store import Place, faults, remote
from attnscope.verbs.corpus.texts import Reading, ahead

TEXTS = [
    f"The {noun} saw the {other} {i} ."
    for i, (noun, other) in enumerate([("dog", "cow"), ("cat", "door")] * 9)
]
LINES = "".join(f"{text}\n" for text in TEXTS).encode()
RECORDS = "".join(json.dumps({"text": text, "n": i}) + "\n" for i, text in enumerate(TEXTS)).encode()


def sentence(text: str) -> str:
    """A line of CoNLL-U for each word, the first of which is the head of the others."""
    how = ["0\troot"] + ["1\tdep"] * len(text)
    words = enumerate(zip(text.split(), how, strict=False), 1)
    return "".join(f"{i}\t{word}\t_\tNOUN\t_\t_\t{head}\t_\t_\n" for i, (word, head) in words) + "\n"


SENTENCES = "".join(map(sentence, TEXTS)).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pyarrow.Codec("zstd").compress(content, asbytes=True),
}


def rows(texts: list[str], at_once: int = 4) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table({"n": range(len(texts)), "text": texts}), sink, row_group_size=at_once)
    return sink.getvalue()


def all_texts(*files: Any, **more: Any) -> list[str]:
    """What a plan of these files reads, split after split."""
    sources = sources_of(CorpusQuestion(files, **more))
    read = [item for split in Plan.of(everything(sources)).splits() for item in Reading(split)]
    assert all(isinstance(item, Text) for item in read), read
    return [item.text for item in read]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits, requests and pauses that are small beside these files."""
    monkeypatch.setattr(splits, "LEAST", 64)
    monkeypatch.setattr(splits, "FEWEST", 7)
    monkeypatch.setattr(remote, "TAIL", 8)
    monkeypatch.setattr(remote, "FIRST", 64)
    monkeypatch.setattr(faults, "PAUSES", (0.0,) * 5)


@pytest.mark.parametrize("suffix", list(PACK))
@pytest.mark.parametrize(("form", "content"), [("txt", LINES), ("jsonl", RECORDS), ("conllu", SENTENCES)])
def test_every_text_is_read_once_in_its_order_whatever_packs_it(
    form: str, content: bytes, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"texts.{form}{suffix}"
    file.write_bytes(PACK[suffix](content))
    assert all_texts(file) == TEXTS
    hidden = tmp_path / f"other.{form}"
    hidden.write_bytes(PACK[suffix](content))
    assert all_texts(hidden) == TEXTS, "what packs it is seen by its first bytes"


def test_the_numbers_are_those_of_the_plain_file(tmp_path: Path, store: Wire, bucket: Place) -> None:
    def measured(file: Any, run: str) -> Corpus:
        return demo.measure(file, tmp_path / run, measures="entropy")

    (tmp_path / "a.txt").write_bytes(LINES)
    plain = measured(tmp_path / "a.txt", "plain")
    (bucket / "b.jsonl.zst").write(PACK[".zst"](RECORDS))
    (bucket / "c.parquet").write(rows(TEXTS))
    for name in ("b.jsonl.zst", "c.parquet"):
        found = measured(bucket / name, name)
        assert found.read.texts == len(TEXTS)
        np.testing.assert_allclose(
            found.measures["entropy"].values, plain.measures["entropy"].values, atol=1e-6
        )
        assert found.texts[0].place.startswith(f"{name}:")


def test_the_split_of_a_data_set_is_read_from_the_hub(tmp_path: Path, as_the_hub: Any) -> None:
    folder = hub_files(tmp_path / "set", "notes.md", "test.parquet")
    for i in range(2):
        (folder / f"train-{i}.parquet").write_bytes(rows(TEXTS[i * 9 : i * 9 + 9]))
    as_the_hub(folder)
    assert all_texts("hf://datasets/some/set:train") == TEXTS
    with pytest.raises(InputError, match=r"no field 'nix' in 'train-0\.parquet': its columns are 'n'"):
        all_texts("hf://datasets/some/set:train", field="nix")


def test_a_source_that_goes_away_ends_with_one_line_and_the_run_goes_on_later(
    tmp_path: Path, store: Wire, bucket: Place
) -> None:
    (bucket / "far.txt").write(20 * LINES)
    store.fault = lambda asked: 0 if (asked.first or 0) > 15 * len(LINES) else None
    with pytest.raises(InputError, match="the same command goes on from there"):
        demo.measure(bucket / "far.txt", tmp_path / "run", measures="entropy")
    store.fault = lambda each: None
    hearing = demo.Hearing()
    found = demo.measure(bucket / "far.txt", tmp_path / "run", hearing, measures="entropy")
    assert found.read.texts == 20 * len(TEXTS)
    assert any("were measured before: going on in" in told for told in hearing.told)


def test_an_archive_that_is_cut_short_is_told_or_refused_as_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(LINES)[:-30])
    found = demo.measure(file, tmp_path / "run", measures="entropy")
    assert 0 < found.read.texts < len(TEXTS)
    aside = [json.loads(line) for line in (tmp_path / "run" / "set-aside.jsonl").read_text().splitlines()]
    assert [each["place"] for each in aside] == [f"a.txt.gz:{found.read.texts + 1}"]
    assert "it ends too early" in aside[0]["why"]
    with pytest.raises(
        InputError,
        match=r"cannot read 'a\.txt\.gz': line [0-9]+.*: after [0-9,]+ bytes of text it ends too early",
    ):
        demo.measure(file, tmp_path / "other", measures="entropy", broken="refuse")


def test_a_broken_line_ends_the_run_where_that_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(RECORDS + b"{nix\n")
    assert demo.measure(file, tmp_path / "run", measures="entropy").read.left_out == 1
    with pytest.raises(InputError, match=r"it is no JSON: .*; --broken skip sets such aside"):
        demo.measure(file, tmp_path / "other", measures="entropy", broken="refuse")


def test_a_parquet_file_within_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(rows(TEXTS)))
    with pytest.raises(InputError, match="a Parquet file within gzip: unpack it"):
        all_texts(tmp_path / "a.parquet.gz")


def found(splits: Any) -> list[tuple[int, int, str]]:
    """Split, line in it and text of all that is read."""
    return [(split.number, item.line, item.text) for split in splits for item in Reading(split)]


ODD = b"\xef\xbb\xbf\xef\xbb\xbfone \r\r\n\xef\xbb\xbftwo\r\n" + LINES + b"\n\n \xef\xbb\xbflast\r"


@pytest.mark.parametrize("name", ["a.txt", "a.conllu", "a.parquet", "a.txt.gz", "file.txt"])
def test_what_is_fetched_ahead_is_what_stands_there_and_each_byte_is_asked_for_once(
    name: str, tmp_path: Path, store: Wire, bucket: Place
) -> None:
    plain = {"a.txt": ODD, "a.conllu": SENTENCES, "a.txt.gz": gzip.compress(ODD)}
    content = plain.get(name, ODD if name == "file.txt" else rows(TEXTS))
    form = "file" if name == "file.txt" else None
    (tmp_path / name).write_bytes(content)
    (bucket / name).write(content)
    (here,), (there,) = (
        sources_of(CorpusQuestion((place,), form=form)) for place in (tmp_path / name, bucket / name)
    )
    there.size, store.log.clear()
    fetched = list(ahead(Plan.of(everything([there])).splits()))
    for span in (span for split in fetched for span in split.spans):
        assert span.held is not None
    asked = len(store.log)
    assert found(fetched) == found(Plan.of(everything([here])).splits())
    assert len(store.log) == asked, "nothing is asked of the store by who measures"
    assert len(fetched) > 3 or form == "file"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_how_far_a_compressed_source_is_comes_from_its_own_bytes(suffix: str, tmp_path: Path) -> None:
    draw = random.Random(0)
    content = "".join(f"{draw.random()} {'the same ' * 30}\n" for _ in range(30_000)).encode()
    file = tmp_path / f"a.txt{suffix}"
    file.write_bytes(PACK[suffix](content))
    assert len(content) > 6 * file.stat().st_size, "more than is guessed"
    plan = Plan.of(everything(sources_of(CorpusQuestion((file,)))))
    sizes = np.cumsum([split.size for split in plan.splits()])
    assert sizes[-1] == plan.whole
    half = sizes[len(sizes) // 2] / plan.whole
    assert abs(half - 0.5) < 0.25
    assert len(set(sizes)) > 3


LONG_LINES = [b"line %d of the text\n" % (i * i) for i in range(5_000)]
CONTENT = b"".join(LONG_LINES)


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
    assert read(packing, packed) == (LONG_LINES, "")
    assert read(packing, packed + PACKED[packing](b"more\n")) == ([*LONG_LINES, b"more\n"], "")


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
