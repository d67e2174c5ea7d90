"""Splits of a corpus have every line once, and their parts merge to the same bits in whatever order."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.verbs.corpus import merging
from attnscope.verbs.corpus.engine import SetAside, Text
from attnscope.verbs.corpus.folder import Folder, Named
from attnscope.verbs.corpus.merging import FAN, TOP, Tree
from attnscope.verbs.corpus.part import NotAPartError, Part, Proved, Totals, read
from attnscope.verbs.corpus.result import CorpusText
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.splits import MOST, Plan, check_tags, everything, first_texts, share
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import Reading


def texts_of(plan: Plan) -> list[tuple[int, int, str]]:
    """Source, line in the source and text of all that stands in the splits, as merging counts them."""
    found, lines = [], dict[int, int]()
    for number, split in enumerate(plan.splits()):
        assert split.number == number
        reading = Reading(split)
        for item in reading:
            line = item.line and item.line + lines.get(item.source, 0)
            found.append((item.source, line, item.text if isinstance(item, Text) else item.why))
        for source, count in reading.lines.items():
            lines[source] = lines.get(source, 0) + count
    return found


def sized(sources: list[Source], size: int) -> Plan:
    plan = Plan.of(everything(sources))
    return Plan(plan.spans, size, plan.whole)


def lines(draw: random.Random) -> bytes:
    made = [
        "x" * draw.choice((0, 1, 3, 20, 70)) + draw.choice(("", "ä", " ")) for _ in range(draw.randint(1, 40))
    ]
    ends = [draw.choice(("\n", "\r\n")) for _ in made]
    ends[-1] = draw.choice(("", "\n"))
    return draw.choice((b"", b"\xef\xbb\xbf")) + "".join(map("".join, zip(made, ends, strict=True))).encode()


@pytest.mark.parametrize("seed", range(8))
def test_every_line_is_in_one_split_wherever_they_are_cut(seed: int, tmp_path: Path) -> None:
    draw, sources, expected = random.Random(seed), [], []
    for i in range(3):
        content = lines(draw)
        (tmp_path / f"{i}.txt").write_bytes(content)
        sources.append(Source(place_of(tmp_path) / f"{i}.txt", f"{i}.txt", Form.LINES))
        plain = content.decode("utf-8-sig").split("\n")
        expected += [(i, n, each.removesuffix("\r")) for n, each in enumerate(plain, 1) if each.strip()]
    for size in (1, 2, 7, 30, 64, 10_000):
        assert texts_of(sized(sources, size)) == expected


@pytest.mark.parametrize("seed", range(5))
def test_every_sentence_of_a_treebank_is_in_one_split(seed: int, tmp_path: Path) -> None:
    draw, expected, said, line = random.Random(seed), [], [], 1
    for i in range(12):
        words = [f"w{i}x{j}" for j in range(draw.randint(1, 4))]
        comments = draw.randint(0, 1)
        said += ["# text"] * comments
        said += [f"{j}\t{word}\t_\tX\t_\t_\t0\troot\t_\t_" for j, word in enumerate(words, 1)]
        said += (blanks := [draw.choice(("", " "))] * draw.randint(1, 3))
        expected.append((0, line, " ".join(words)))
        line += comments + len(words) + len(blanks)
    (tmp_path / "a.conllu").write_text("\n".join(said))
    source = Source(place_of(tmp_path) / "a.conllu", "a.conllu", Form.CONLLU)
    for size in (1, 2, 50, 113, 10_000):
        assert texts_of(sized([source], size)) == expected


@pytest.mark.parametrize("groups", [1, 3, 100])
def test_every_row_of_parquet_is_in_one_split_also_of_groups_that_are_cut(
    groups: int, tmp_path: Path
) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    texts = [None if i == 5 else f"{i} " * (i % 30 + 1) for i in range(40)]
    place = tmp_path / "a.parquet"
    write_table(pyarrow.table({"n": range(40), "text": texts}), place, row_group_size=-(-40 // groups))
    source = Source(place_of(place), "a.parquet", Form.PARQUET)
    expected = [(0, i + 1, text or "its field 'text' is no text but null") for i, text in enumerate(texts)]
    for size in (1, 100, 500, 100_000):
        plan = sized([source], size)
        assert texts_of(plan) == expected
        if size == 100:
            assert len(list(plan.splits())) > 10


def test_small_files_stand_together_and_the_plan_is_of_their_sizes_alone(tmp_path: Path) -> None:
    sources = []
    for i in range(50):
        (tmp_path / f"{i}.txt").write_text(f"text {i}\n" * 10)
        sources.append(Source(place_of(tmp_path) / f"{i}.txt", f"{i}.txt", Form.FILE))
    plan = sized(sources, 500)
    assert [len(split.spans) for split in plan.splits()][:3] == [7, 6, 6]  # of 70 bytes, later of 80
    assert sum(split.size for split in plan.splits()) == plan.whole
    whole = [f"text {i}\n" * 9 + f"text {i}" for i in range(50)]
    assert [(line, text) for _, line, text in texts_of(plan)] == [(0, text) for text in whole]


@pytest.mark.parametrize(
    ("size", "least", "most", "count"),
    [
        (10**4, 2**16, 2**16, 1),
        (2**16 + 1000, 2**16, 2**16 + 1000, 1),  # no second one of a few lines
        (2**16 + 2**15 + 1000, 2**16, 2**16, 2),
        (2**23, 2**17, 2**17, 64),
        (4 * 10**9, 2**18 - 2**10, 2**18 + 2**10, 15259),
    ],
)
def test_splits_are_many_where_a_corpus_is_small_and_bounded_where_it_is_large(
    size: int, least: int, most: int, count: int, tmp_path: Path
) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(size)
    plan = Plan.of(everything([Source(place_of(tmp_path) / "sparse", "sparse", Form.LINES)]))
    assert least <= plan.size <= most
    assert len(sizes := [split.size for split in plan.splits()]) == plan.about == count
    assert sum(sizes) == size
    assert count == 1 or min(sizes) >= max(sizes) / 2


def test_a_limit_reads_no_further_than_the_last_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\nthree\nfour\n")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in "abc"))
    sources = [
        Source(place_of(tmp_path) / "a.txt", "a.txt", Form.LINES),
        Source(place_of(tmp_path) / "b.jsonl", "b.jsonl", Form.JSONL),
    ]  # fmt: skip
    spans = everything(sources)
    for limit, expected in (
        (1, "one"),
        (3, "one two three"),
        (4, "one two three four"),
        (6, "one two three four a b"),
    ):
        texts, cut = first_texts(spans, limit)
        assert texts == limit
        assert " ".join(text for *_, text in texts_of(Plan(cut, 7, 1))) == expected
    assert first_texts(spans, 99) == (7, spans)


def test_tags_are_looked_for_no_further_than_they_are_found(tmp_path: Path) -> None:
    place = tmp_path / "a.conllu"
    place.write_text("1\ta\t_\tDET\t_\t_\t0\troot\t_\t_\n\n1\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n")
    spans = everything([Source(place_of(place), "a.conllu", Form.CONLLU)])
    check_tags(spans, {"--from-pos": "DET", "--to-pos": "NOUN"})
    with pytest.raises(InputError, match="--to-pos: no word is VERB: DET, NOUN"):
        check_tags(spans, {"--from-pos": "DET", "--to-pos": "VERB"})


def test_a_large_model_has_smaller_splits_by_its_size_and_kind_of_device_alone(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as made:
        made.truncate(90_000)  # a thousand sentences
    spans = everything([Source(place_of(file), "sparse", Form.LINES)])

    def splits(weights: int, device: str) -> list[int]:
        return [split.size for split in Plan.of(spans, share(weights, device)).splits()]

    assert splits(90 * 10**6, "cpu") == splits(1, "cpu") == splits(0, "cpu") == [90_000]
    base, seven_billion = splits(438 * 10**6, "cpu"), splits(14 * 10**9, "cpu")
    assert len(base) == 4
    assert set(seven_billion[:-1]) == {2048}, "the sentences of a batch, and no fewer"
    assert sum(base) == sum(seven_billion) == 90_000
    assert splits(438 * 10**6, "cuda") == [90_000]
    assert len(splits(14 * 10**9, "cuda")) == 2


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
    found, every = Folder(place_of(folder)), len(order) // (again + 1)
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
    monkeypatch.setattr(merging, "FAN", 3)
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
