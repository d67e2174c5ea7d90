"""A run that is cut off at every point, and what is wrong with a corpus, a folder or a disk."""

import errno
import json
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import pytest

from attnscope.errors import InputError
from attnscope.results.stored.document import as_npz
from attnscope.verbs.corpus import folder as folders
from attnscope.verbs.corpus import merging
from attnscope.verbs.corpus import splits as planning
from attnscope.verbs.corpus.store import place_of

SPLITS = 7  # of 110 bytes


class CutOffError(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def short_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST", 110)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts") / "texts.txt"
    lines = [*map(str.encode, demo.TEXTS), b"caf\xe9", " ".join(["very"] * 90).encode()]
    place.write_bytes(b"\n".join(lines))
    return place


def fails_at(monkeypatch: pytest.MonkeyPatch, name: str, turn: int) -> None:
    """The `turn`-th call of a function of `os` ends the process before it is made."""
    real, calls = getattr(os, name), iter(range(1000))

    def cut(*given: object) -> object:
        if next(calls) == turn:
            raise CutOffError
        return real(*given)

    monkeypatch.setattr(os, name, cut)


def test_a_run_that_is_cut_off_at_every_write_goes_on_to_the_same_bytes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = demo.measure(file, tmp_path / "whole")
    expected, files = as_npz(whole), demo.everything(tmp_path / "whole")
    assert len(files) == SPLITS + 1
    for name, turns in (("replace", 6), ("fsync", 6)):
        run, cut_off = tmp_path / name, 0
        for turn in range(turns):
            with monkeypatch.context() as patched:
                fails_at(patched, name, turn % 4)
                try:
                    demo.measure(file, run)
                except CutOffError:
                    cut_off += 1
                    assert not [each for each in run.rglob("*") if each.name.endswith(".part")]
        assert cut_off >= 2
        (run / "parts" / ".0-000001.part").write_bytes(b"half a part of a process that was killed")
        again = demo.measure(file, run)
        assert as_npz(again) == expected
        assert demo.everything(run) == files


@pytest.mark.parametrize(("how", "fan"), [("cut short", 16), ("a bit is another", 2), ("gone", 2)])
def test_what_is_done_is_not_measured_again_and_what_is_damaged_is_named_and_measured(
    how: str, fan: int, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "FAN", fan)
    run, hearing = tmp_path / "run", demo.Hearing()
    expected = as_npz(demo.measure(file, run))
    kept = demo.everything(run)
    level, first = (0, 1) if fan == 16 else (2, 0)
    (place,) = (run / "parts").glob(f"{level}-{first:06d}-*.parquet")
    content = bytearray(place.read_bytes())
    if how == "gone":
        place.unlink()
    elif how == "cut short":
        place.write_bytes(content[:-9])
    else:
        content[len(content) // 2] ^= 1
        place.write_bytes(content)
    measured = []

    def engine(recipe, splits, listener):  # type: ignore[no-untyped-def]
        for finished in demo.once_open(recipe, splits, listener):
            measured.append(finished.number)
            yield finished

    assert as_npz(demo.measure(file, run, hearing, engine)) == expected
    assert measured == list(range(fan**level)) if level else measured == [1]
    assert demo.everything(run) == kept
    told = "were measured before" if how == "gone" else f"{place.name}' is damaged: measured again"
    assert any(told in each for each in hearing.told)
    assert not any("all was measured" in each for each in hearing.told)
    measured.clear()
    assert as_npz(demo.measure(file, run, hearing, engine)) == expected
    assert measured == []
    assert f"all was measured before, and is read from {run}" in hearing.told


@pytest.mark.parametrize("fan", [2, 16])
def test_damaged_rows_are_measured_again_and_nothing_else(
    fan: int, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rows = tmp_path / "run", tmp_path / "rows.parquet"
    monkeypatch.setattr(merging, "FAN", fan)
    demo.measure(file, run, rows=rows)
    kept, written = demo.everything(run), rows.read_bytes()
    (place,) = (run / "rows").glob("000001-*.parquet" if fan == 16 else "000000-*.rows")
    content = place.read_bytes()
    for wrong in (content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        place.write_bytes(wrong)
        hearing, measured = demo.Hearing(), []

        def engine(recipe, splits, listener, measured=measured):  # type: ignore[no-untyped-def]
            for finished in demo.once_open(recipe, splits, listener):
                measured.append(finished.number)
                yield finished

        demo.measure(file, run, hearing, engine, rows=rows)
        assert any(f"{place.name}' is damaged: measured again" in each for each in hearing.told)
        assert measured == ([1] if fan == 16 else [0, 1, 2, 3])
        assert demo.everything(run) == kept
        assert rows.read_bytes() == written


def test_rows_of_many_splits_lie_in_few_files_also_where_a_run_was_cut_off(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo.measure(file, tmp_path / "apart", rows=tmp_path / "apart.parquet")
    apart = {each.name: each.read_bytes() for each in (tmp_path / "apart" / "rows").iterdir()}
    assert len(apart) == 3  # in the others nothing can be read
    monkeypatch.setattr(merging, "FAN", 2)
    demo.measure(file, tmp_path / "whole", rows=tmp_path / "whole.parquet")
    expected = (tmp_path / "apart.parquet").read_bytes()
    assert (tmp_path / "whole.parquet").read_bytes() == expected
    (together,) = (tmp_path / "whole" / "rows").iterdir()
    assert together.read_bytes() == b"".join(content for _, content in sorted(apart.items()))
    cut_off = 0
    for turn in range(0, 20, 4):
        run = tmp_path / f"{turn}"
        for name in ("replace", "unlink"):
            with monkeypatch.context() as patched:
                fails_at(patched, name, turn)
                try:
                    demo.measure(file, run, rows=tmp_path / "cut.parquet")
                except CutOffError:
                    cut_off += 1
        demo.measure(file, run, rows=tmp_path / "cut.parquet")
        assert demo.everything(run) == demo.everything(tmp_path / "whole")
        assert (tmp_path / "cut.parquet").read_bytes() == expected
    assert cut_off >= 5
    monkeypatch.setattr(folders, "GATHERED", len(together.read_bytes()) // 2)
    demo.measure(file, tmp_path / "bounded", rows=tmp_path / "bounded.parquet")
    assert (tmp_path / "bounded.parquet").read_bytes() == expected
    many = sorted((tmp_path / "bounded" / "rows").glob("*.rows"))
    assert len(many) in (2, 3)
    assert sum(each.stat().st_size for each in many) == together.stat().st_size


def test_what_cannot_be_read_is_counted_told_and_kept(file: Path, tmp_path: Path) -> None:
    hearing = demo.Hearing()
    found = demo.measure(file, tmp_path / "run", hearing)
    assert found.read.texts == 12
    assert found.read.set_aside == {
        "it is not valid UTF-8": 1,
        "longer than the tokens that are read": 1,
    }
    aside = [json.loads(line) for line in (tmp_path / "run" / "set-aside.jsonl").read_text().splitlines()]
    assert [(each["place"], each["text"][:7]) for each in aside] == [
        ("texts.txt:15", "caf\\xe9"),
        ("texts.txt:16", "very ve"),
    ]
    assert "reads at most 64" in aside[1]["why"]
    assert any("set aside 2 of the texts and lines" in each for each in hearing.told)
    assert "1 longer than 64 tokens" in " ".join(found.text(width=140).split())
    cut = demo.measure(file, tmp_path / "cut", truncate=True, measures="entropy")
    assert (cut.read.texts, cut.read.cut, cut.read.longest) == (13, 1, 64)


def test_a_run_that_another_attnscope_began_is_refused_and_left_as_it_is(file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    demo.measure(file, run, measures="entropy")
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace("corpus-run/3", "corpus-run/2"))
    before = demo.everything(run)
    with pytest.raises(
        InputError, match=r"was begun by another attnscope \(attnscope.corpus-run/2\): remove it"
    ):
        demo.measure(file, run, measures="entropy")
    assert demo.everything(run) == before


def test_a_folder_of_another_run_is_refused_and_says_in_what_they_differ(file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    demo.measure(file, run, measures="entropy")
    before = demo.everything(run)
    with pytest.raises(InputError, match=r"belongs to another run: measures is .* there and .* here"):
        demo.measure(file, run, measures="previous")
    with pytest.raises(InputError, match="belongs to another run: limit is null there and 3 here"):
        demo.measure(file, run, measures="entropy", limit=3)
    other = tmp_path / "texts.txt"
    other.write_bytes(file.read_bytes() + b"\nOne more.")
    with pytest.raises(InputError, match=r"files is .*texts\.txt .* there and .*texts\.txt .* here"):
        demo.measure(other, run, measures="entropy")
    assert demo.everything(run) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"no folder of a run and not empty: name another with --run"):
        demo.measure(file, tmp_path / "mine")
    with pytest.raises(InputError, match=r"texts.txt' is no folder: name another with --run"):
        demo.measure(file, other)


def test_a_run_that_somebody_works_on_is_left_alone(file: Path, tmp_path: Path) -> None:
    with (
        folders.Folder(place_of(tmp_path / "run")).locked(),
        pytest.raises(InputError, match="another process works on"),
    ):
        demo.measure(file, tmp_path / "run")


@pytest.mark.skipif(os.name == "nt", reason="the lock of Windows is another call")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_run_needs_no_lock_where_the_file_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    import fcntl

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    broken = number == errno.EIO
    refusal: AbstractContextManager[Any] = nullcontext()
    if broken:
        refusal = pytest.raises(InputError, match=r"cannot write '.*lock': .*error")
    with refusal, folders.Folder(place_of(tmp_path / "run")).locked():
        assert not broken


def test_a_run_lies_at_any_address_and_one_that_somebody_works_on_is_left_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "BEAT", 0.2)
    monkeypatch.setattr(folders, "SETTLED", 0.05)
    there = place_of("memory://runs/one")
    expected = as_npz(demo.measure(file, tmp_path / "here", rows=tmp_path / "a.parquet"))
    assert as_npz(demo.measure(file, there.address, rows=tmp_path / "b.parquet")) == expected
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    here = {name: content for name, content in demo.everything(tmp_path / "here").items() if name != "lock"}
    assert {name: (there / name).read() for name in here} == here
    assert (there / "parts").names() == [each.name for each in sorted((tmp_path / "here/parts").iterdir())]
    assert there.names() == ["manifest.json", "set-aside.jsonl"]
    with (
        folders.Folder(there).locked(),
        pytest.raises(InputError, match="another process works on 'memory://runs/one'"),
    ):
        demo.measure(file, there.address, rows=tmp_path / "b.parquet")
    (there / "lock").write(b"of a process that was killed")
    (there / "parts" / ".0a1b.part").write(b"half a part of it")
    assert as_npz(demo.measure(file, there.address, rows=tmp_path / "b.parquet")) == expected
    assert not (there / "lock").exists()
    assert not (there / "parts" / ".0a1b.part").exists()


def test_a_disk_that_is_full_is_one_line_and_what_was_done_is_kept(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    expected = as_npz(demo.measure(file, tmp_path / "whole"))
    real, calls = os.fsync, iter(range(100))

    def full(handle: int) -> None:
        if next(calls) == 4:  # manifest and its folder, the first part and its folder
            raise OSError(28, "No space left on device")
        real(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        told = (
            r"No space left on device: 1[0-9]% of the texts are measured and kept, the same command goes on"
        )
        with pytest.raises(InputError, match=told):
            demo.measure(file, run)
    assert [each.name[:9] for each in (run / "parts").iterdir()] == ["0-000000-"]
    assert as_npz(demo.measure(file, run)) == expected


@pytest.mark.parametrize(
    ("name", "content", "more", "told"),
    [
        ("e.txt", "", {}, "no text in 'e.txt': empty"),
        ("e.txt", " \n\n", {}, "no text in 'e.txt': nothing but blank lines"),
        ("e.txt", "very " * 90, {}, "longer than 64 tokens; all of it stands in .*set-aside"),
        (
            "a.jsonl",
            '{"body": "It is late."}\n',
            {},
            r"a.jsonl:1: it has no field 'text': .* 'body' \(--field",
        ),
        ("a.jsonl", '{"text": 3}\n[1]\n', {}, "its field 'text' is no text but int"),
        ("a.jsonl", "{half", {}, "it is no JSON"),
        ("a.conllu", "1\tbroken\n", {}, "'a.conllu': a.conllu:1: 2 fields between tabs"),
        ("a.conllu", "broken\n", {}, "'a.conllu': a.conllu:1: 1 field between tabs"),
        ("a.txt", "It is late.", {"form": "csv"}, "no format 'csv': lines, file, jsonl, conllu, parquet"),
        ("a.txt", "It is late.", {"from_pos": "VERB"}, "go together"),
        ("a.txt", "It is late.", {"from_pos": "VERB", "to_pos": "X"}, "a .conllu file"),
        ("a.txt", "It is late.", {"measures": "near"}, "no near over a corpus"),
        ("a.txt", "It is late.", {"limit": 0}, "--limit is 0"),
    ],
)
def test_what_is_wrong_with_a_corpus_is_one_line(
    name: str, content: str, more: dict[str, object], told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=told):
        demo.measure(tmp_path / name, tmp_path / "run", **{"measures": "entropy", **more})
    if "set-aside" in told:  # what is said to stand there does
        assert "very very" in (tmp_path / "run" / "set-aside.jsonl").read_text()


def test_parquet_is_read_and_rows_are_written_by_arrow(file: Path, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    texts = [*demo.REAL, None]
    parquet.write_table(pyarrow.table({"body": texts}), tmp_path / "a.parquet")
    rows = [tmp_path / f"{i}.parquet" for i in range(2)]
    found = demo.measure(tmp_path / "a.parquet", tmp_path / "1", field="body", rows=rows[0])
    assert found.read.texts == 12
    assert found.read.set_aside == {"its field 'body' is no text but null": 1}
    table = parquet.read_table(rows[0]).to_pandas()
    assert len(table) == 12 * 6
    mine = table[(table.layer == 2) & (table["head"] == 7)]
    assert mine["entropy"].mean() == pytest.approx(found.measures["entropy"].values[1, 2])
    assert mine["same"].count() == found.measures["same"].count[1, 2]
    demo.measure(tmp_path / "a.parquet", tmp_path / "2", field="body", rows=rows[1])
    assert rows[0].read_bytes() == rows[1].read_bytes()
    with pytest.raises(InputError, match=r"no field 'text' in 'a.parquet': its columns are 'body' "):
        demo.measure(tmp_path / "a.parquet", tmp_path / "3")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no more")
    (tmp_path / "notes").mkdir()
    with pytest.raises(InputError, match=r"no file of texts in '.*notes': it is empty"):
        demo.measure(tmp_path / "notes", tmp_path / "5")
    with pytest.raises(InputError, match="it is no whole Parquet file"):
        demo.measure(tmp_path / "b.parquet", tmp_path / "4")


def test_texts_that_change_while_they_are_measured_give_no_result(file: Path, tmp_path: Path) -> None:
    texts, run = tmp_path / "texts.txt", tmp_path / "run"
    texts.write_bytes(file.read_bytes())

    def changing(recipe, splits, listener):  # type: ignore[no-untyped-def]
        for finished in demo.once_open(recipe, splits, listener):
            yield finished
            if finished.number == 2:
                texts.write_bytes(texts.read_bytes().replace(b"It is late.", b"It is done."))

    with pytest.raises(InputError, match=r"'texts\.txt' changed while it was measured"):
        demo.measure(texts, run, engine=changing)
    with pytest.raises(InputError, match=r"files is .*texts\.txt .* there and .*texts\.txt .* here"):
        demo.measure(texts, run)
    found = demo.measure(texts, tmp_path / "other")
    os.utime(texts)  # its time is another, its content is not
    assert as_npz(demo.measure(texts, tmp_path / "other")) == as_npz(found)


def test_the_result_reads_every_part_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rows, read = tmp_path / "run", tmp_path / "rows.parquet", list[str]()
    demo.measure(file, run, rows=rows)
    once = folders.Folder.part
    monkeypatch.setattr(
        folders.Folder, "part", lambda own, named: read.append(str(named)) or once(own, named)
    )
    demo.measure(file, run, rows=rows)
    assert sorted(read) == sorted(each.name for each in (run / "parts").iterdir())
