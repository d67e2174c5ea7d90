"""Files of the cache: whole, checked to the last byte, bounded, and harmless whatever happens to them."""

import errno
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.session.cache import entry as entries
from attnscope.session.cache.entry import DamagedEntryError, Part
from attnscope.session.cache.store import Place, Store
from attnscope.session.cache.store import place as place_of

KEY, OTHER = "a" * 64, "b" * 64
ASKED = ["heads", "The dog ran.", "-m", "demo", "-l", "1", "--head", "0"]
FROM = "note: from the cache: "


def part(seed: int = 0, size: int = 6) -> Part:
    numbers = np.random.default_rng(seed).normal(size=(2, size))
    return Part({"name": f"é{seed}", "at": [1, None]}, {"q": numbers, "seen": numbers > 0})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Place(tmp_path / "captures", 10**6))


def path_of(store: Store, key: str) -> Path:
    return store.place.folder / key[:2] / f"{key}.capture"


def test_what_is_kept_comes_back_bit_by_bit(store: Store) -> None:
    wanted = part()
    assert store.put(KEY, {"H0": wanted, "H1": part(1)})
    with store.get(KEY) as found:
        back = found.part("H0")
        assert sorted(found) == ["H0", "H1"]
    assert back.values == wanted.values
    assert all(back.arrays[name].tobytes() == values.tobytes() for name, values in wanted.arrays.items())
    assert back.arrays["q"].shape == (2, 6)
    assert store.get(OTHER) is None


def test_a_change_of_any_byte_is_seen(store: Store) -> None:
    store.put(KEY, {"H0": part()})
    path = path_of(store, KEY)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(DamagedEntryError), store.get(KEY) as found:
            found.part("H0")


def test_a_file_that_was_cut_anywhere_is_no_entry(store: Store) -> None:
    store.put(KEY, {"H0": part()})
    path = path_of(store, KEY)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedEntryError), store.get(KEY) as found:
            found.part("H0")


def test_an_entry_under_the_name_of_another_one_answers_nothing(store: Store) -> None:
    store.put(KEY, {"H0": part()})
    path_of(store, OTHER).parent.mkdir()
    path_of(store, OTHER).write_bytes(path_of(store, KEY).read_bytes())
    with pytest.raises(DamagedEntryError, match="another question"):
        store.get(OTHER)


def test_an_entry_of_another_version_or_another_user_is_not_read(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(entries, "FORMAT", "attnscope-capture/1")
    store.put(KEY, {"H0": part()})
    monkeypatch.undo()
    with pytest.raises(DamagedEntryError, match="another version"):
        store.get(KEY)
    store.put(KEY, {"H0": part()})
    monkeypatch.setattr(os, "geteuid", lambda: 12345, raising=False)
    with pytest.raises(DamagedEntryError, match="another user"):
        store.get(KEY)


def test_only_its_owner_can_read_what_is_kept(store: Store) -> None:
    store.put(KEY, {"H0": part()})
    path = path_of(store, KEY)
    assert [each.stat().st_mode & 0o077 for each in (path, path.parent, store.place.folder)] == [0, 0, 0]


def test_what_was_asked_for_longest_ago_makes_room(tmp_path: Path) -> None:
    size = len(_written(tmp_path))
    store = Store(Place(tmp_path / "captures", int(size * 5.5)))
    keys = [f"{number:02x}" * 32 for number in range(5)]
    for number, key in enumerate(keys):
        store.put(key, {"H0": part()})
        os.utime(path_of(store, key), (number, number))
    store.get(keys[0]).__exit__()  # asked for again
    store.put(KEY, {"H0": part()})
    left = {held.path.stem for held in store.held()}
    assert KEY in left
    assert keys[0] in left
    assert keys[1] not in left
    assert sum(held.size for held in store.held()) <= store.place.room


def _written(folder: Path) -> bytes:
    store = Store(Place(folder / "measured", 10**6))
    store.put(KEY, {"H0": part()})
    return path_of(store, KEY).read_bytes()


def test_one_entry_never_takes_all_the_room(tmp_path: Path) -> None:
    store = Store(Place(tmp_path / "captures", 3000))
    assert not store.put(KEY, {"H0": part(size=100)})
    assert store.held() == ()
    for name in ("ab", "cd", "ef", "01"):
        Store(Place(store.place.folder, 10**6)).put(name * 32, {"H0": part(size=100)})
    assert sum(each.size for each in store.held()) > 3000
    assert not store.put(KEY, {"H0": part(size=100)})
    assert sum(each.size for each in store.held()) <= 3000  # nor does what was kept when there was more


def test_a_write_that_fails_leaves_nothing(store: Store, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        store.put(KEY, {"H0": part()})
    assert not [each for each in store.place.folder.rglob("*") if each.is_file()]


def test_what_a_killed_writer_left_is_cleared_away_in_time(store: Store) -> None:
    store.put(KEY, {"H0": part()})
    old, new = (path_of(store, KEY).with_name(f".{name}.part") for name in ("old", "new"))
    for each in (old, new):
        each.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.put(OTHER, {"H0": part()})
    assert (old.exists(), new.exists()) == (False, True)
    assert store.clear() == 2
    assert not [each for each in store.place.folder.rglob("*") if each.is_file()]


def test_what_is_cleared_away_while_it_is_written_is_not_kept_and_no_accident(store: Store) -> None:
    other = Store(store.place)
    replace = os.replace

    def cleared_before(*paths: Path) -> None:
        other.clear()
        replace(*paths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnscope.session.cache.store.os.replace", cleared_before)
        assert not store.put(KEY, {"H0": part()})
    assert store.get(KEY) is None
    assert store.put(KEY, {"H0": part()})


def test_many_processes_write_read_evict_and_clear_at_once(tmp_path: Path) -> None:
    size = len(_written(tmp_path))
    store = Store(Place(tmp_path / "captures", size * 8))
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(store, seed)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert not list(store.place.folder.rglob("*.unfinished"))


def _work(store: Store, seed: int) -> None:
    """Entries of equal keys have equal parts, as where the same question is asked twice; ends at once."""
    code = 1
    try:
        drawn, end = np.random.default_rng(seed), time.monotonic() + 0.5
        while time.monotonic() < end:
            number = int(drawn.integers(12))
            key = f"{number:02x}" * 32
            store.put(key, {"H0": part(number)})
            found = store.get(key)
            if found is not None:
                with found:
                    assert found.part("H0").arrays["q"].tobytes() == part(number).arrays["q"].tobytes()
            if seed == 0 and number == 0:
                store.clear()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.parametrize("harm", ["cut", "changed", "foreign", "folder"])
def test_a_cache_that_is_damaged_costs_a_notice_and_no_answer(attnscope, place: Path, harm: str) -> None:
    made = attnscope(*ASKED)
    largest = max(place.rglob("*.capture"), key=lambda each: each.stat().st_size)
    whole = largest.read_bytes()
    if harm == "folder":
        largest.unlink()
        largest.mkdir()
    else:
        head = len(whole) - 40_000  # of every part of it something lies behind
        changed = whole[:head] + bytes(each ^ 1 for each in whole[head:])
        largest.write_bytes({"cut": whole[:head], "changed": changed, "foreign": b"hello\n"}[harm])
    again = attnscope(*ASKED)
    assert (again.exit_code, again.stdout) == (0, made.stdout)
    assert FROM not in again.stderr
    notices = [line for line in again.stderr.splitlines() if "computed without it" in line]
    assert len(notices) == 1, again.stderr
    if harm != "folder":
        assert FROM in attnscope(*ASKED).stderr  # made good


def test_a_cache_that_is_no_folder_or_has_no_room_costs_a_notice(attnscope, place: Path, monkeypatch) -> None:
    place.parent.mkdir()
    place.write_text("in the way")
    done = attnscope(*ASKED)
    assert done.exit_code == 0
    assert done.stderr.count("computed without it") == done.stderr.count("\n") == 1
    assert place.read_text() == "in the way"
    place.unlink()
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if str(target).endswith(".capture"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    done = attnscope(*ASKED)
    assert done.exit_code == 0
    assert "cannot be written: No space left on device: computed without it" in done.stderr
    assert not [each for each in place.rglob("*") if each.is_file()]


def test_where_captures_are_kept_and_how_much_is_told_by_the_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path))
    for told, room in (("", 2 * 10**9), ("1.5GB", 1_500_000_000), ("300 k", 300_000), ("7", 7)):
        monkeypatch.setenv("ATTNSCOPE_CACHE_SIZE", told)
        assert place_of() == Place(tmp_path / "captures", room)
    monkeypatch.setenv("ATTNSCOPE_CACHE_SIZE", "0")
    assert place_of() is None
    monkeypatch.setenv("ATTNSCOPE_CACHE_SIZE", "a lot")
    with pytest.raises(InputError, match="such as 500MB"):
        place_of()


def test_the_command_tells_what_is_kept_and_forgets_it(attnscope, place: Path, monkeypatch) -> None:
    assert attnscope("cache").stdout.startswith("0 earlier answers are kept here, 0 bytes of 2 GB.")
    attnscope(*ASKED)
    assert attnscope("cache", "info").stdout.startswith("2 earlier answers are kept here, ")
    digest = place.parent / "digests" / "of-a-file.json"
    digest.parent.mkdir()
    digest.touch()
    assert attnscope("cache", "clear").stdout.startswith("2 earlier answers forgotten, ")
    assert not digest.exists()
    assert '"entries": 0' in attnscope("cache", "--json").stdout
    monkeypatch.setenv("ATTNSCOPE_CACHE", "off")
    assert "nothing is kept" in attnscope("cache").stdout
