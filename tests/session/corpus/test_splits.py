"""Splits of a corpus: every line, sentence and row is in one of them, wherever they are cut."""

import json
import random
from pathlib import Path

import pytest

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import SetAside, Text
from attnscope.session.corpus.source import Form, Source
from attnscope.session.corpus.splits import Plan, check_tags, everything, first_texts, share
from attnscope.session.corpus.store import Place
from attnscope.session.corpus.texts import Reading


def read(plan: Plan) -> list[tuple[int, int, str]]:
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


@pytest.mark.parametrize("seed", range(20))
def test_every_line_is_in_one_split_wherever_they_are_cut(seed: int, tmp_path: Path) -> None:
    draw, sources, expected = random.Random(seed), [], []
    for i in range(3):
        content = lines(draw)
        (tmp_path / f"{i}.txt").write_bytes(content)
        sources.append(Source(Place.of(tmp_path) / f"{i}.txt", f"{i}.txt", Form.LINES))
        plain = content.decode("utf-8-sig").split("\n")
        expected += [(i, n, each.removesuffix("\r")) for n, each in enumerate(plain, 1) if each.strip()]
    for size in (1, 2, 7, 30, 64, 10_000):
        assert read(sized(sources, size)) == expected


@pytest.mark.parametrize("seed", range(20))
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
    source = Source(Place.of(tmp_path) / "a.conllu", "a.conllu", Form.CONLLU)
    for size in (1, 2, 50, 113, 10_000):
        assert read(sized([source], size)) == expected


@pytest.mark.parametrize("groups", [1, 3, 100])
def test_every_row_of_parquet_is_in_one_split_also_of_groups_that_are_cut(
    groups: int, tmp_path: Path
) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    texts = [None if i == 5 else f"{i} " * (i % 30 + 1) for i in range(40)]
    place = tmp_path / "a.parquet"
    write_table(pyarrow.table({"n": range(40), "text": texts}), place, row_group_size=-(-40 // groups))
    source = Source(Place.of(place), "a.parquet", Form.PARQUET)
    expected = [(0, i + 1, text or "its field 'text' is no text but null") for i, text in enumerate(texts)]
    for size in (1, 100, 500, 100_000):
        plan = sized([source], size)
        assert read(plan) == expected
        if size == 100:
            assert len(list(plan.splits())) > 10


def test_small_files_stand_together_and_the_plan_is_of_their_sizes_alone(tmp_path: Path) -> None:
    sources = []
    for i in range(50):
        (tmp_path / f"{i}.txt").write_text(f"text {i}\n" * 10)
        sources.append(Source(Place.of(tmp_path) / f"{i}.txt", f"{i}.txt", Form.FILE))
    plan = sized(sources, 500)
    assert [len(split.spans) for split in plan.splits()][:3] == [7, 6, 6]  # of 70 bytes, later of 80
    assert sum(split.size for split in plan.splits()) == plan.whole
    whole = [f"text {i}\n" * 9 + f"text {i}" for i in range(50)]
    assert [(line, text) for _, line, text in read(plan)] == [(0, text) for text in whole]


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
    plan = Plan.of(everything([Source(Place.of(tmp_path) / "sparse", "sparse", Form.LINES)]))
    assert least <= plan.size <= most
    assert len(sizes := [split.size for split in plan.splits()]) == plan.about == count
    assert sum(sizes) == size
    assert count == 1 or min(sizes) >= max(sizes) / 2


def test_a_limit_reads_no_further_than_the_last_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\nthree\nfour\n")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in "abc"))
    sources = [
        Source(Place.of(tmp_path) / "a.txt", "a.txt", Form.LINES),
        Source(Place.of(tmp_path) / "b.jsonl", "b.jsonl", Form.JSONL),
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
        assert " ".join(text for *_, text in read(Plan(cut, 7, 1))) == expected
    assert first_texts(spans, 99) == (7, spans)


def test_tags_are_looked_for_no_further_than_they_are_found(tmp_path: Path) -> None:
    place = tmp_path / "a.conllu"
    place.write_text("1\ta\t_\tDET\t_\t_\t0\troot\t_\t_\n\n1\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n")
    spans = everything([Source(Place.of(place), "a.conllu", Form.CONLLU)])
    check_tags(spans, {"--from-pos": "DET", "--to-pos": "NOUN"})
    with pytest.raises(InputError, match="--to-pos: no word is VERB: DET, NOUN"):
        check_tags(spans, {"--from-pos": "DET", "--to-pos": "VERB"})


def test_what_is_set_aside_is_counted_in_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ncaf\xe9\n\nfour\n")
    plan = sized([Source(Place.of(tmp_path) / "a.txt", "a.txt", Form.LINES)], 4)
    items = [item for split in plan.splits() for item in Reading(split)]
    assert [isinstance(item, SetAside) for item in items] == [False, True, False]
    assert [line for _, line, _ in read(plan)] == [1, 2, 4]


def test_a_large_model_has_smaller_splits_by_its_size_and_kind_of_device_alone(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as made:
        made.truncate(90_000)  # a thousand sentences
    spans = everything([Source(Place.of(file), "sparse", Form.LINES)])

    def splits(weights: int, device: str) -> list[int]:
        return [split.size for split in Plan.of(spans, share(weights, device)).splits()]

    assert splits(90 * 10**6, "cpu") == splits(1, "cpu") == splits(0, "cpu") == [90_000]
    base, seven_billion = splits(438 * 10**6, "cpu"), splits(14 * 10**9, "cpu")
    assert len(base) == 4
    assert set(seven_billion[:-1]) == {2048}, "the sentences of a batch, and no fewer"
    assert sum(base) == sum(seven_billion) == 90_000
    assert splits(438 * 10**6, "cuda") == [90_000]
    assert len(splits(14 * 10**9, "cuda")) == 2


def test_of_a_large_corpus_a_large_model_has_no_more_parts_than_a_small_one(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as made:
        made.truncate(4 * 10**9)
    spans = everything([Source(Place.of(file), "sparse", Form.LINES)])
    usual = Plan.of(spans)
    assert usual.about <= (large := Plan.of(spans, share(10**11, "cpu"))).about <= 2**14
    assert large.size > 9 * 10**8 / 2**14
