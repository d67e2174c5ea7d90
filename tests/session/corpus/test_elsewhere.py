"""A corpus elsewhere, or compressed, gives the numbers of the plain file, and no byte is asked for twice."""

import bz2
import gzip
import io
import json
import lzma
import random
import time
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
from attnscope.session.corpus import splits
from attnscope.session.corpus.engine.interface import Text
from attnscope.session.corpus.question import CorpusQuestion
from attnscope.session.corpus.splits import Plan, everything
from attnscope.session.corpus.store import Place, faults, streams
from attnscope.session.corpus.texts import Reading, ahead

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
    sources = CorpusQuestion(files, **more).sources()
    read = [item for split in Plan.of(everything(sources)).splits() for item in Reading(split)]
    assert all(isinstance(item, Text) for item in read), read
    return [item.text for item in read]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits, requests and pauses that are small beside these files."""
    monkeypatch.setattr(splits, "LEAST", 64)
    monkeypatch.setattr(splits, "FEWEST", 7)
    monkeypatch.setattr(streams, "TAIL", 8)
    monkeypatch.setattr(streams, "FIRST", 64)
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


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.conllu", "a.jsonl.zst", "a.txt.gz", "a.parquet"])
def test_on_an_object_store_that_breaks_off_every_text_is_read_and_no_byte_asked_for_twice(
    name: str, store: Wire, bucket: Place
) -> None:
    plain = {"txt": LINES, "jsonl": RECORDS, "conllu": SENTENCES}.get(name.split(".")[1])
    content = (
        rows(TEXTS) if plain is None else PACK[f".{name.split('.')[2]}" if name.count(".") > 1 else ""](plain)
    )
    (bucket / name).write(content)
    store.log.clear()
    assert all_texts(bucket / name) == TEXTS
    one = len(content) // len(TEXTS)  # of which each of about eight splits reads the last to its end
    split_ends = 8 * 2 * one if name in ("a.txt", "a.jsonl", "a.conllu") else 0
    footer = len(content) if plain is None else 0  # it is less than what is read of an end in one go
    assert store.given(name) <= len(content) + split_ends + footer
    (bucket / name).write(content)
    store.log.clear()
    store.fault = lambda asked: (None, 20)[len(store.log) % 2] if asked.method == "GET" else None
    assert all_texts(bucket / name) == TEXTS
    assert store.cuts() > 0


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


def test_the_split_of_a_data_set_is_read_from_the_hub(tmp_path: Path, as_the_hub: Any) -> None:
    folder = hub_files(tmp_path / "set", "notes.md")
    for i in range(2):
        (folder / f"train-{i}.parquet").write_bytes(rows(TEXTS[i * 9 : i * 9 + 9]))
    (folder / "test.parquet").write_bytes(rows(["none of these"]))
    as_the_hub(folder)
    assert all_texts("hf://datasets/some/set:train") == TEXTS
    with pytest.raises(
        InputError, match=r"no field 'nix' in 'train-0\.parquet': its columns are 'n', 'text'"
    ):
        all_texts("hf://datasets/some/set:train", field="nix")


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


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.conllu", "a.parquet", "a.txt.gz", "file.txt"])
def test_what_is_fetched_ahead_is_what_stands_there_and_each_byte_is_asked_for_once(
    name: str, tmp_path: Path, store: Wire, bucket: Place
) -> None:
    plain = {"a.txt": ODD, "a.jsonl": RECORDS, "a.conllu": SENTENCES, "a.txt.gz": gzip.compress(ODD)}
    content = plain.get(name, ODD if name == "file.txt" else rows(TEXTS))
    form = "file" if name == "file.txt" else None
    (tmp_path / name).write_bytes(content)
    (bucket / name).write(content)
    (here,), (there,) = (
        CorpusQuestion((place,), form=form).sources() for place in (tmp_path / name, bucket / name)
    )
    there.size, store.log.clear()
    fetched = list(ahead(Plan.of(everything([there])).splits()))
    for span in (span for split in fetched for span in split.spans):
        assert span.held is not None
    asked = len(store.log)
    assert found(fetched) == found(Plan.of(everything([here])).splits())
    assert len(store.log) == asked, "nothing is asked of the store by who measures"
    assert len(fetched) > 3 or form == "file"


def test_a_slow_store_is_read_while_the_model_works(store: Wire, bucket: Place) -> None:
    (bucket / "slow.txt").write(3 * LINES)
    (source,) = CorpusQuestion((bucket / "slow.txt",)).sources()
    plan = Plan.of(everything([source]))
    many, pause = len(list(plan.splits())), 0.1

    def slow(asked: Any) -> None:
        time.sleep(pause / 2)  # of each of two requests: the split, and its last line to the end

    def taken(splits: Any) -> float:
        began = time.monotonic()
        for split in splits:
            list(Reading(split))
            time.sleep(2 * pause)  # the model
        return time.monotonic() - began

    store.fault = slow
    one_by_one, together = taken(plan.splits()), taken(ahead(plan.splits()))
    assert many >= 7
    assert one_by_one > many * 2.5 * pause
    assert together < 0.85 * one_by_one


def test_errors_of_what_is_read_ahead_come_after_what_stands_before(store: Wire, bucket: Place) -> None:
    (bucket / "far.txt").write(20 * LINES)
    (source,) = CorpusQuestion((bucket / "far.txt",)).sources()
    store.fault = lambda asked: 0 if (asked.first or 0) > 15 * len(LINES) else None
    read: list[int] = []

    def measured() -> None:
        for split in ahead(Plan.of(everything([source])).splits()):
            read.append(split.number)

    with pytest.raises(InputError, match="cannot read"):
        measured()
    assert read == list(range(len(read)))
    assert len(read) >= 5


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_how_far_a_compressed_source_is_comes_from_its_own_bytes(suffix: str, tmp_path: Path) -> None:
    draw = random.Random(0)
    content = "".join(f"{draw.random()} {'the same ' * 30}\n" for _ in range(30_000)).encode()
    file = tmp_path / f"a.txt{suffix}"
    file.write_bytes(PACK[suffix](content))
    assert len(content) > 6 * file.stat().st_size, "more than is guessed"
    plan = Plan.of(everything(CorpusQuestion((file,)).sources()))
    sizes = np.cumsum([split.size for split in plan.splits()])
    assert sizes[-1] == plan.whole
    half = sizes[len(sizes) // 2] / plan.whole
    assert abs(half - 0.5) < 0.25
    assert len(set(sizes)) > 3
