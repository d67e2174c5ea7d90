"""Places: here, in a real object store behind a network that fails, on a web server, on a hub's stand-in."""

import pickle
import subprocess
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from fsspec import filesystem
from hub_stand_in import COMMIT, hub_files
from wire import Wire, on_s3, serving

from attnscope.errors import InputError
from attnscope.verbs.corpus.source import files_of
from attnscope.verbs.corpus.store import NotWrittenError, Place, faults, place_of, remote

CONTENT = bytes(i * i % 251 for i in range(300_007))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "PAUSES", (0.0,) * 5)
    monkeypatch.setattr(remote, "BLOCK", 2**16)


@pytest.fixture(params=["here", "s3", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "here":
        place = place_of(tmp_path / "run")
    elif request.param == "s3":
        place = request.getfixturevalue("bucket")
    else:
        place = place_of(f"memory://{tmp_path.name}")
    place.make()
    return place


def test_a_place_is_written_read_listed_and_removed_alike_wherever_it_is(folder: Place) -> None:
    (folder / "b.bin").write(CONTENT)
    with (folder / "a.txt").writing() as file:
        file.write(b"one\n")
        file.write(b"two\n")
    (folder / "parts" / "c.txt").local is None or (folder / "parts").make()
    (folder / "parts" / "c.txt").write(b"three")
    assert folder.names() == ["a.txt", "b.bin"]
    assert [place.name for place in folder.files()] == ["a.txt", "b.bin", "c.txt"]
    assert [place.name for place in (folder / "*.txt").files()] == ["a.txt"]
    travelled = pickle.loads(pickle.dumps(folder / "b.bin"))
    assert travelled == folder / "b.bin"
    assert travelled.read() == CONTENT
    assert travelled.read(7, 70_001) == CONTENT[7:70_001]
    assert travelled.read(299_999) == CONTENT[299_999:]
    with travelled.open(5, 100) as stream:
        assert stream.read(10) == CONTENT[5:15]
        assert stream.read() == CONTENT[15:]
    assert travelled.size == len(CONTENT)
    with travelled.at_random() as anywhere:
        anywhere.seek(-10, 2)
        assert anywhere.read() == CONTENT[-10:]
        anywhere.seek(100)
        assert anywhere.read(3) == CONTENT[100:103]
    (folder / "a.txt").remove()
    (folder / "a.txt").remove()
    assert not (folder / "a.txt").exists()
    assert folder.exists()
    folder.remove()
    assert folder.names() == []
    with pytest.raises(FileNotFoundError):
        travelled.read()


def test_what_is_not_written_to_its_end_is_not_there(folder: Place) -> None:
    (folder / "kept.txt").write(b"before")

    def cut_off() -> None:
        with (folder / "kept.txt").writing() as file:
            file.write(b"after")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_off()
    assert folder.names() == ["kept.txt"]
    assert (folder / "kept.txt").read() == b"before"


def test_what_a_store_would_show_half_written_goes_there_under_a_name_that_nobody_foresees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, target, names = filesystem("file"), str(tmp_path / "a.txt"), []

    def send(_: object, place: str) -> None:
        names.append(Path(place).name)
        Path(place).write_text("all of it")

    for _ in range(2):
        remote._whole(send, system, target)
    assert names[0] != names[1]
    assert all(name.startswith(".") and name.endswith(".part") for name in names)

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(system, "mv", refused)
    with pytest.raises(OSError, match="No space"):
        remote._whole(send, system, target)
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_a_path_of_this_machine_needs_no_fsspec(tmp_path: Path) -> None:
    program = f"""
import sys
from attnscope.verbs.corpus.store import Place, place_of
place = place_of({str(tmp_path)!r}) / "a"
place.write(b"x"); place.read(); place.signature; place_of({str(tmp_path)!r}).files()
assert not {{"fsspec", "torch", "huggingface_hub"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_byte_of_an_object_is_asked_for_once(store: Wire, bucket: Place) -> None:
    (bucket / "whole").write(CONTENT)
    store.log.clear()
    with (bucket / "whole").open() as stream:
        assert stream.read() == CONTENT
    assert store.given("/whole") == len(CONTENT)
    store.log.clear()
    with (bucket / "whole").open(1000, 2000) as stream:
        assert stream.read(1000) == CONTENT[1000:2000]
    assert store.given("/whole") == 1000, "no more is fetched ahead than will be read for sure"


def test_a_connection_that_breaks_off_is_taken_up_where_it_was(store: Wire, bucket: Place) -> None:
    (bucket / "broken").write(CONTENT)
    store.log.clear()
    store.fault = lambda asked: (
        (None, 40_000, "503", 10)[len(store.log) % 4] if asked.method == "GET" else None
    )
    with (bucket / "broken").open() as stream:
        assert stream.read() == CONTENT
    assert store.cuts() > 3
    assert store.given("/broken") <= len(CONTENT) + store.cuts() * 40_000
    asked = [each.first or 0 for each in store.log if each.method == "GET"]
    assert asked == sorted(asked), "never back behind what was had"


def test_a_source_that_stays_away_is_one_line_that_says_that_the_run_goes_on(
    store: Wire, bucket: Place
) -> None:
    (bucket / "gone").write(CONTENT)
    store.fault = lambda asked: 100 if asked.method == "GET" else None
    with (bucket / "gone").open() as stream, pytest.raises(InputError) as refused:
        stream.read()
    told = str(refused.value)
    assert "\n" not in told
    for part in (f"cannot read '{bucket}/gone'", "6 times in a row", "the same command goes on from there"):
        assert part in told


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("nowhere://x/y", "there is no nowhere://, such as s3://, gs://"),
        ("oci://x/y", "oci:// needs ocifs: pip install ocifs"),
        ("zip://x::junk", "there is no junk://, such as s3://"),
        (f"zip://x::{__file__}", "cannot open 'zip://x::.*': .*not a zip file"),
        (f"tar://x::{__file__}", "cannot open 'tar://x::.*"),
        ("dbfs://x", "cannot open 'dbfs://x': .*missing 2 required .*'instance' and 'token'"),
        ("dir://x", "cannot open 'dir://x'"),
    ],
)
def test_an_address_that_nothing_can_open_says_which_are_and_what_is_missing(address: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        place_of(address).read()


def test_who_may_not_read_is_told_where_credentials_are_looked_for(
    store: Wire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(InputError, match="not allowed; credentials are looked for in AWS_ACCESS_KEY_ID"):
        place_of("s3://bucket/x", endpoint_url=store.address).read()


def test_what_cannot_be_written_says_so(tmp_path: Path, store: Wire) -> None:
    with pytest.raises(NotWrittenError, match="no such folder"):
        place_of(tmp_path / "none" / "a").write(b"x")
    with pytest.raises(NotWrittenError, match="no such folder or bucket"):
        place_of("s3://no-bucket/a", **on_s3(store)).write(b"x")


class _Plain(BaseHTTPRequestHandler):
    """A web server that knows no ranges, breaks off the first time, and keeps one file to itself."""

    begun = 0

    def do_HEAD(self) -> None:
        self._head()

    def _head(self) -> None:
        self.send_response(403 if "secret" in self.path else 200)
        self.send_header("Accept-Ranges", "none")
        self.send_header("Content-Length", "0" if "secret" in self.path else str(len(CONTENT)))
        self.end_headers()

    def do_GET(self) -> None:
        self._head()
        if "secret" not in self.path:
            _Plain.begun += 1
            self.wfile.write(CONTENT[: 100_000 if _Plain.begun == 1 else None])

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_web_server_without_ranges_is_read_from_its_start_to_its_end() -> None:
    with serving(_Plain) as address:
        place = place_of(f"{address}/texts.txt")
        assert not place.by_range
        with place.open() as stream:
            assert stream.read() == CONTENT
        assert _Plain.begun == 2
        with pytest.raises(
            InputError, match="not allowed; credentials are looked for in a name and password"
        ):
            place_of(f"{address}/secret.txt").read()
        with pytest.raises(InputError, match="its server gives no parts of files"):
            place.at_random()


CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
  - split: heldout
    path: [data/test-*, more/**]
---
"""


def names(*addresses: str) -> list[str]:
    return [place.address.partition(f"some/set@{COMMIT}/")[2] for place in files_of(addresses)]


def test_the_splits_of_a_data_set_are_those_of_its_card(tmp_path: Path, as_the_hub: Any) -> None:
    files = (
        "data/train-0.parquet",
        "data/train-1.parquet",
        "data/test-0.parquet",
        "more/a/b.jsonl.gz",
        "x.csv",
    )
    hub = as_the_hub(hub_files(tmp_path / "set", *files, card=CARD))
    assert names("hf://datasets/some/set:train") == ["data/train-0.parquet", "data/train-1.parquet"]
    assert names("hf://datasets/some/set:heldout") == ["data/test-0.parquet", "more/a/b.jsonl.gz"]
    assert names("hf://datasets/some/set@main:train") == ["data/train-0.parquet", "data/train-1.parquet"]
    place = files_of(["hf://datasets/some/set:heldout"])[0]
    hub.fault = lambda asked: 3 if "resolve" in asked.path and not hub.cuts() else None
    with place.open() as stream:
        assert stream.read() == b"data/test-0.parquet"
    assert hub.cuts() == 1
    with pytest.raises(InputError, match="no split 'dev' in 'hf://datasets/some/set:dev': train, heldout"):
        names("hf://datasets/some/set:dev")
    with pytest.raises(InputError, match="several splits: add one of :train, :heldout"):
        names("hf://datasets/some/set")
    with pytest.raises(InputError, match="no configuration 'fr' in some/set: default"):
        names("hf://datasets/some/set/fr:train")
    with pytest.raises(InputError, match="the hub has no data set 'some/other', or one that only HF_TOKEN"):
        names("hf://datasets/some/other:train")
    with pytest.raises(InputError, match="not allowed; credentials are looked for in HF_TOKEN"):
        names("hf://datasets/some/gated:train")


def test_without_a_card_the_splits_are_those_that_names_say(tmp_path: Path, as_the_hub: Any) -> None:
    as_the_hub(hub_files(tmp_path / "set", "train.jsonl", "valid/a.txt", "valid/b.txt", "notes.md"))
    assert names("hf://datasets/some/set:train") == ["train.jsonl"]
    assert names("hf://datasets/some/set:validation") == ["valid/a.txt", "valid/b.txt"]
    with pytest.raises(InputError, match="no split 'test'"):
        names("hf://datasets/some/set:test")


def test_a_data_set_of_one_split_needs_no_name_for_it(tmp_path: Path, as_the_hub: Any) -> None:
    as_the_hub(hub_files(tmp_path / "set", "a.parquet", "b.parquet"))
    assert names("hf://datasets/some/set") == ["a.parquet", "b.parquet"]


def test_patterns_and_folders_are_the_texts_in_them(tmp_path: Path, store: Wire, bucket: Place) -> None:
    for name in ("b.txt", "a.jsonl.zst", "notes.md", ".hidden.txt", "deep/c.txt.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
        (bucket / name).write(b"x\n")
    for folder in (place_of(tmp_path), replace(bucket, address=bucket.address + "/")):
        assert [place.name for place in files_of([folder])] == ["a.jsonl.zst", "b.txt", "c.txt.gz"]
    for base in (place_of(tmp_path), bucket):
        assert [place.name for place in files_of([base / "*.txt"])] == ["b.txt"]
        assert [place.name for place in files_of([base / "**" / "*.gz"])] == ["c.txt.gz"]
        with pytest.raises(InputError, match="no file is called like"):
            files_of([base / "*.parquet"])
        with pytest.raises(InputError, match=r"b\.txt' is given twice"):
            files_of([base / "b.txt", base / "*.txt"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no file of texts in .*: it is empty"):
        files_of([tmp_path / "empty"])
    web = "https://some.where/get?file=a.txt"
    assert files_of([web]) == (place_of(web),)
