"""Parts merged in a tree as a run grows: few and small files, the same bits in whatever order they came."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.analysis.corpus.totals import Totals
from attnscope.results.claims.lengths import CorpusText
from attnscope.session.corpus import tree
from attnscope.session.corpus.engine.interface import SetAside
from attnscope.session.corpus.folder import Folder, Named
from attnscope.session.corpus.part import NotAPartError, Part, Proved, read
from attnscope.session.corpus.splits import MOST
from attnscope.session.corpus.store import Place
from attnscope.session.corpus.tree import FAN, TOP, Tree

SHAPE = (2, 2, 3)
TEXTS = 5  # of a part


def values(split: int, shape: tuple[int, ...] = SHAPE, texts: int = TEXTS) -> np.ndarray:
    drawn = np.random.default_rng(split).beta(2, 5, size=(texts, *shape))
    drawn[0, 0, 0] = np.nan
    return drawn


def part(split: int, shape: tuple[int, int, int] = SHAPE, texts: int = TEXTS) -> Part:
    """That of a split of `texts` lines and one that cannot be read, all of one source."""
    told = [CorpusText(f"0:{i + 2}", 7 + i % 40, f"text {split} {i}", True) for i in range(texts)]
    measures, layers, heads = (tuple(range(size)) for size in shape)
    return Part(
        first=split, measures=tuple(map(str, measures)), layers=layers, heads=heads, kind="encoder", tower="",
        limit=None, longest=split, lines={0: texts + 1}, absent={}, proved=Proved({"certified": 1}, 1),
        set_aside=(SetAside(0, 1, "it is not valid UTF-8", f"of {split}"),), read=texts, texts=texts,
        totals=Totals.of(values(split, shape, texts), np.arange(texts) + (split << 24), told),
    )  # fmt: skip


def kept(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted((folder / "parts").iterdir())}


def grown(folder: Path, order: list[int], again: int = 0) -> Tree:
    """Parts written and added in this order; `again` times the process ends after a part was written."""
    found, every = Folder(Place.of(folder)), len(order) // (again + 1)
    grows = Tree.of(found)
    for i, split in enumerate(order, 1):
        named = found.keep(part(split), 0, split)
        if again and i % every == 0:
            grows = Tree.of(found)
        else:
            grows.add(named)
    return grows


def test_parts_come_to_the_same_bits_in_whatever_order_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "FAN", 3)
    order = list(range(32))
    grown(tmp_path / "a", order)
    files = kept(tmp_path / "a")
    assert [name[:8] for name in files] == [
        "0-000030",
        "0-000031",
        "1-000009",
        "2-000000",
        "2-000001",
        "2-000002",
    ]
    for seed in range(2):
        random.Random(seed).shuffle(order)
        again = grown(tmp_path / str(seed), order, again=4 - seed)
        assert kept(tmp_path / str(seed)) == files
    whole = None
    for each in again.in_order(32):
        whole = each if whole is None else whole.merged(each)
    assert whole is not None
    every = np.concatenate([values(split) for split in range(32)])
    assert (whole.splits, whole.texts, whole.lines, whole.longest) == (
        32,
        32 * TEXTS,
        {0: 32 * (TEXTS + 1)},
        31,
    )
    count, mean, error = whole.totals.moments.whole()
    np.testing.assert_array_equal(count, (~np.isnan(every)).sum(axis=0))
    np.testing.assert_allclose(mean, np.nanmean(every, axis=0), rtol=1e-13)
    np.testing.assert_allclose(error, np.nanstd(every, axis=0, ddof=1) / np.sqrt(count), rtol=1e-12)
    assert [aside.line for aside in whole.set_aside] == [i * (TEXTS + 1) + 1 for i in range(32)]
    lowest = int(np.nanargmin(every[:, 1, 1, 2]))
    outer = whole.totals.outer
    text = outer.texts[int(outer.numbers[0, 0, 1, 1, 2])]
    split, i = divmod(lowest, TEXTS)
    assert (text.text, text.place) == (f"text {split} {i}", f"0:{split * (TEXTS + 1) + i + 2}")


@dataclass
class Counted:
    """A folder that keeps nothing but names, and the most of them that there were at once."""

    names: set[Named] = field(default_factory=set)
    most: int = 0
    rows: tuple[()] = ()

    def keep(self, part: Any, level: int, number: int) -> Named:
        named = Named(level, number, "")
        self.names.add(named)
        self.most = max(self.most, len(self.names))
        return named

    def drop(self, named: Named) -> None:
        self.names.remove(named)

    def part(self, named: Named) -> Any:
        return self

    def merged(self, other: Any) -> Any:
        return self


def test_a_billion_tokens_come_to_some_hundred_files_of_less_than_a_gigabyte() -> None:
    size = 5 * 10**9  # bytes of text: five for a token, as of English
    splits, folder = -(-size // MOST), Counted()
    grows = Tree(folder)  # type: ignore[arg-type]
    at_once = list(range(64))  # measured by as many workers, which come in whatever order
    draw, coming = random.Random(0), iter(range(64, splits))
    while at_once:
        split = at_once.pop(draw.randrange(len(at_once)))
        grows.add(folder.keep(None, 0, split))
        at_once += [more] if (more := next(coming, None)) is not None else []
    rest = splits % FAN**TOP
    assert len(folder.names) == splits // FAN**TOP + rest // FAN + rest % FAN
    assert folder.most < 500
    # as many values as make a sketch that grows no further, of a statistic
    merged = part(0, (3, 4, 5), 3000)
    for split in range(1, 4):
        merged = merged.merged(part(split, (3, 4, 5), 3000))
    a_statistic = len(merged.written()) / 60
    minilm = 30 * 6 * 12
    assert folder.most * minilm * a_statistic < 10**9


def test_the_bytes_of_a_part_are_those_of_its_content_and_nothing_else_is_one() -> None:
    first = part(3)
    content = first.written()
    assert read(content).written() == content == part(3).written()
    assert part(4).written() != content
    for wrong in (b"", content[:-7], b"PAR1" + content, content.replace(b"corpus-part/1", b"corpus-part/9")):
        with pytest.raises(NotAPartError):
            read(wrong)
