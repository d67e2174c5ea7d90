"""What a user names as a corpus, as the files that it is: paths, addresses, patterns, folders, hub splits."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.corpus.packed import SUFFIXES, packing_by_name, unpacked_name
from attnscope.session.corpus.store import Place, ask_anew, hub

_TEXTS = (".txt", ".text", ".lines", ".jsonl", ".ndjson", ".json", ".conllu", ".parquet")
_PATTERN = "*?["


def files_of(named: Sequence[str | Path | Place]) -> tuple[Place, ...]:
    """Every file that is named, in its order; `InputError` where one is not there, or would count twice."""
    files: list[Place] = []
    ask_anew()
    for each in named:
        for place in _files(Place.of(each)):
            if place in files:
                raise InputError(f"'{place}' is given twice: its texts would count twice")
            files.append(place)
    return tuple(files)


def _files(place: Place) -> Iterator[Place]:
    if is_piped(place):
        yield place
    elif (split := hub.named(place.address)) is not None:
        ends = [f"{end}{packed}" for end in _TEXTS for packed in ("", *SUFFIXES)]
        for file in hub.files_of_split(place.address, split, ends):
            yield Place(file, place.options)
    elif is_pattern(place):
        hidden = place.name.startswith(".")
        if not (found := [file for file in place.files() if hidden or not file.name.startswith(".")]):
            raise InputError(f"no file is called like '{place}'")
        yield from found
    elif place.address.endswith("/") or (not _is_web(place) and place.is_folder()):
        yield from _in_folder(place)
    else:
        yield place


def is_piped(place: Place) -> bool:
    """Whether it is standard input."""
    return place.address == str(incoming.STANDARD_INPUT)


def check_named(name: str) -> None:
    """Raises `InputError` where a path of this machine leads nowhere: nothing heavy is imported for it."""
    place = Place.of(name)
    if (local := place.local) is not None and not is_pattern(place) and not local.is_dir():
        incoming.check_there(local)


def is_pattern(place: Place) -> bool:
    """Whether it names several by signs that stand for others; no file that has them in its name."""
    if place.local is not None:
        return any(sign in place.address for sign in _PATTERN) and not place.exists()
    return any(sign in place.address for sign in ("*" if _is_web(place) else _PATTERN))


def _is_web(place: Place) -> bool:
    return place.address.startswith(("http://", "https://"))


def _in_folder(folder: Place) -> Iterator[Place]:
    found = [file for file in folder.files() if not file.name.startswith((".", "_"))]
    plain = [unpacked_name(file.name) if packing_by_name(file.name) else file.name for file in found]
    texts = [file for file, name in zip(found, plain, strict=True) if name.lower().endswith(_TEXTS)]
    if not texts:
        there = f": it has {len(found)} others" if found else ": it is empty" if folder.exists() else ""
        raise InputError(
            f"no file of texts in '{folder}'{there}; read are {', '.join(_TEXTS)}, packed or not"
        )
    yield from texts
