"""Files of a split of a dataset on the Hugging Face Hub, such as `hf://datasets/owner/name:train`.

What its card says under `configs` counts; where it says nothing, the names of files and folders (`train`,
`test-00000-of-00002`), as the hub's own viewer goes by. A revision that moves is replaced by the commit that
it is now, so that what is read stays the same.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.verbs.corpus.store import RefusedError
from attnscope.verbs.corpus.store.faults import FIRST, PAUSES, trying
from attnscope.verbs.corpus.store.remote import RemotePlace

_NAMED = re.compile(
    r"hf://datasets/(?P<repo>[^/@:]+(?:/[^/@:]+)?)(?:@(?P<revision>[^:]+?))?(?:/(?P<config>[^:/@]+))?:(?P<split>[^:/]*)"
)
_WHOLE = re.compile(r"hf://datasets/(?P<repo>[^/@:]+/[^/@:]+)(?:@(?P<revision>[^/:]+))?/?")
_ALIKE = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev", "development"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_CARD = "README.md"


@dataclass(frozen=True)
class DataSet:
    """A dataset at a commit: all its files, and the configurations in its card."""

    repo: str
    commit: str
    files: tuple[str, ...]
    configs: tuple[Mapping[str, Any], ...]

    def address(self, file: str) -> str:
        """The address of one of its files."""
        return f"hf://datasets/{self.repo}@{self.commit}/{file}"

    def splits(self, config: str | None, readable: Sequence[str]) -> dict[str, list[str]]:
        """Readable files of every split of a configuration, by the split's name."""
        return self._by_card(config, readable) if self.configs else _by_name(config, readable)

    def _by_card(self, config: str | None, readable: Sequence[str]) -> dict[str, list[str]]:
        names = [str(each.get("config_name", "default")) for each in self.configs]
        if config is not None and config not in names:
            raise InputError(f"no configuration '{printable(config)}' in {self.repo}: {', '.join(names)}")
        usual = next((each for each in self.configs if each.get("default")), None)
        if config is None and usual is None and len(names) > 1 and "default" not in names:
            raise InputError(
                f"{self.repo} has several configurations: name one, such as "
                f"hf://datasets/{self.repo}/{names[0]}:train: {', '.join(names)}"
            )
        wanted = names.index(config or ("default" if "default" in names else names[0]))
        chosen = usual if config is None and usual is not None else self.configs[wanted]
        given = chosen.get("data_files")
        if given is None:
            return _by_name(None, _below(readable, str(chosen.get("data_dir") or "")))
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            given = [{"split": "train", "path": given}]
        return {str(each["split"]): _matching(each["path"], readable) for each in given}


def _below(files: Sequence[str], folder: str) -> list[str]:
    start = f"{folder.strip('./')}/" if folder.strip("./") else ""
    return [file for file in files if file.startswith(start)]


def _matching(patterns: Any, files: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        parts = [_expression(part) for part in re.split(r"(\*\*/?)", pattern.removeprefix("./"))]
        whole = re.compile("".join(parts) + r"\Z")
        found |= dict.fromkeys(file for file in files if whole.match(file))
    return list(found)


def _expression(part: str) -> str:
    if part.startswith("**"):
        return "(?:.*/)?" if part.endswith("/") else ".*"
    return re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


def _by_name(config: str | None, files: Sequence[str]) -> dict[str, list[str]]:
    files = list(files) if config is None else _below(files, config)
    if config is not None and not files:
        raise InputError(f"no configuration '{printable(config)}': no folder of that name")
    found: dict[str, list[str]] = {}
    for file in files:
        if (split := _split_in(file)) is not None:
            found.setdefault(split, []).append(file)
    return found or ({"train": files} if files else {})


def _split_in(file: str) -> str | None:
    for part in reversed(file.lower().split("/")):
        words = re.split(r"[-._ 0-9]+", part)
        for split, names in _ALIKE.items():
            if any(name in words for name in names):
                return split
    return None


def named(address: str) -> tuple[str, str | None, str | None, str] | None:
    """Dataset, revision, configuration and split of an address that names a split; None for any other.

    The split is empty where the address names a whole data set and no file in it.
    """
    if (match := _NAMED.fullmatch(address)) is not None:
        return match["repo"], match["revision"], match["config"], match["split"]
    if (match := _WHOLE.fullmatch(address)) is not None:
        return match["repo"], match["revision"], None, ""
    return None


def data_set(repo: str, revision: str | None, address: str) -> DataSet:
    """Looks a dataset up on the hub."""
    from huggingface_hub import HfApi, RepoCard

    try:
        info = trying(lambda: HfApi().dataset_info(repo, revision=revision), "read", address, PAUSES[:FIRST])
    except FileNotFoundError as error:
        where = f" at revision '{printable(revision)}'" if revision else ""
        raise RefusedError(
            f"cannot read '{printable(address)}': the hub has no data set '{printable(repo)}'{where}, or one "
            "that only HF_TOKEN (or `hf auth login`) may read"
        ) from error
    found = DataSet(repo, str(info.sha), tuple(sorted(each.rfilename for each in info.siblings or ())), ())
    if _CARD not in found.files:
        return found
    card = RemotePlace(found.address(_CARD)).read().decode("utf-8", "replace")
    said = RepoCard(card, ignore_metadata_errors=True).data.to_dict().get("configs")
    return replace(found, configs=tuple(each for each in said or () if isinstance(each, dict)))


def files_of_split(
    address: str, asked: tuple[str, str | None, str | None, str], readable: Sequence[str]
) -> list[str]:
    """Addresses of a split's files whose names end in one of `readable`."""
    repo, revision, config, split = asked
    found = data_set(repo, revision, address)
    known = [file for file in found.files if any(fnmatchcase(file.lower(), f"*{end}") for end in readable)]
    splits = {name: files for name, files in found.splits(config, known).items() if files}
    there = ", ".join(splits)
    if not splits:
        raise InputError(f"no file in '{printable(address)}' that can be read: {', '.join(readable)}")
    if not split and len(splits) > 1:
        raise InputError(f"'{printable(address)}' has several splits: add one of :{', :'.join(splits)}")
    if split and split not in splits:
        raise InputError(f"no split '{printable(split)}' in '{printable(address)}': {there}")
    return [found.address(file) for file in splits[split or there]]
