"""Which head finds which relation: words worked by hand, and counts against slow loops."""

import math
from pathlib import Path

import cases_dependencies as made
import numpy as np
import pytest
import torch

from attnscope.analysis.controls import wilson
from attnscope.analysis.rows import answers, looks_ahead, pieces_of, word_weights
from attnscope.analysis.treebank import read_treebank
from attnscope.errors import InputError
from attnscope.tokens import Token, Tokens
from attnscope.verbs.dependencies.relations import FIXED_DISTANCES, Tally, ranked, shares
from attnscope.verbs.dependencies.result import Direction

TREEBANK = """\
# sent_id = 1
# text = Don't panic.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\t_\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_
2.1\tyou\t_\t_\t_\t_\t_\t_\t_\t_
3\tpanic\tpanic\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

# sent_id = 2
1\t20 000\t_\tNUM\t_\t_\t2\tnummod\t_\t_
2\tcafés\t_\tNOUN\t_\t_\t0\troot\t_\t_
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "small.conllu"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("change", [lambda t: t, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t])
def test_a_treebank_gives_words_heads_and_relations_without_what_is_no_word(tmp_path: Path, change) -> None:
    bank = read_treebank(written(tmp_path, change(TREEBANK)))
    first, second = bank.sentences
    assert bank.damaged == ()
    assert first.words == ("Do", "n't", "panic", ".")
    assert first.heads == (2, 2, -1, 2)
    assert first.edges == [(0, 2, "aux"), (1, 2, "advmod"), (3, 2, "punct")]
    assert (first.line, second.line) == (4, 11)
    assert second.words == ("20 000", "cafés")
    assert second.edges == [(0, 1, "nummod")]
    assert len(read_treebank(tmp_path / "small.conllu", 1).sentences) == 1


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("1\tDo\tdo", "1\tDo", 4, "9 fields between tabs"),
        ("1\tDo\tdo", "one\tDo\tdo", 4, "'one' is no number of a word"),
        ("2\tn't", "3\tn't", 5, "word 3 stands where word 2 should"),
        ("1-2\tDon't", "2-3\tDon't", 3, "multiword token 2-3 stands before word 1"),
        ("2.1\tyou", "1.1\tyou", 6, "empty node 1.1 stands behind word 2"),
        ("_\t_\t3\taux", "_\t_\t_\taux", 4, "the head of 'Do' is '_'"),
        ("_\t_\t3\taux", "_\t_\t-3\taux", 4, "the head of 'Do' is '-3'"),
        ("_\t_\t3\taux", "_\t_\t9\taux", 4, "the head of 'Do' is word 9, the sentence has 4"),
        ("_\t_\t3\taux", "_\t_\t1\taux", 4, "'Do' is its own head"),
        ("3\tpunct", "3\t_", 8, "'.' has no relation to its head"),
        ("2\tn't\tnot", "2\t \tnot", 5, "word 2 has no form"),
        ("3\tpanic", "# late\n3\tpanic", 7, "a comment stands in front of a sentence"),
    ],
)
def test_a_sentence_that_is_malformed_is_left_out_and_told_by_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, why: str
) -> None:
    assert old in TREEBANK
    path = written(tmp_path, TREEBANK.replace(old, new))
    bank = read_treebank(path)
    (told,) = bank.damaged
    assert told.startswith(f"{path}:{line}: {why}")
    assert "\n" not in told
    assert [each.words for each in bank.sentences] == [("20 000", "cafés")]
    alone = written(tmp_path, TREEBANK.replace(old, new).partition("\n\n")[0])
    with pytest.raises(InputError) as refused:
        read_treebank(alone)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no sentence in"),
        (b"# only this\n\n", "no sentence in"),
        (b"1\t\xff\xfe", ":1: it is not valid"),
    ],
)
def test_what_is_no_treebank_is_refused_in_one_line(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_treebank(written(tmp_path, content))
    with pytest.raises(InputError, match="cannot read"):
        read_treebank(tmp_path / "none.conllu")


def tokens() -> Tokens:
    """`[CLS] ca fé opened - [SEP]` for the words café, opened, ​ and -: the third word has no piece."""
    text = "café opened \u200b -"
    spans = [None, (0, 2), (2, 4), (5, 11), (14, 15), None]
    words = [None, 0, 0, 1, 3, None]
    return Tokens(
        (text,),
        tuple(
            Token(i, str(i), "" if span is None else text[slice(*span)], span, word, special=span is None)
            for i, (span, word) in enumerate(zip(spans, words, strict=True))
        ),
    )


WEIGHTS = torch.tensor(
    [
        [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
        [0.2, 0.1, 0.2, 0.1, 0.0, 0.4],
        [0.0, 0.3, 0.1, 0.4, 0.1, 0.1],
        [0.0, 0.1, 0.15, 0.5, 0.2, 0.05],
        [0.6, 0.0, 0.1, 0.3, 0.0, 0.0],
        [0.9, 0.1, 0.0, 0.0, 0.0, 0.0],
    ]
)


def test_weights_of_words_are_sums_over_keys_and_means_over_queries_worked_by_hand() -> None:
    pieces = pieces_of(tokens(), 4)
    assert pieces.int().tolist() == [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0] * 6, [0, 0, 0, 0, 1, 0]]
    found = word_weights(WEIGHTS[None, None], pieces[None])[0, 0]
    expected = [
        [(0.1 + 0.2 + 0.3 + 0.1) / 2, (0.1 + 0.4) / 2, 0, (0.0 + 0.1) / 2],
        [0.1 + 0.15, 0.5, 0, 0.2],
        [0, 0, 0, 0],
        [0.0 + 0.1, 0.3, 0, 0.0],
    ]
    assert found.numpy() == pytest.approx(np.array(expected), abs=1e-7)


def test_answers_leave_out_the_word_itself_and_lie_where_a_causal_head_can_look() -> None:
    found = answers(WEIGHTS[None, None], pieces_of(tokens(), 4)[None])[0, 0].tolist()
    # whom each attends to; who attends to each: 0 gets .25 of 1 and .1 of 3, 1 gets .25 of 0, .3 of 3
    assert found == [[1, 0, -1, 1], [1, 3, -1, 1]]
    causal = torch.tril(WEIGHTS + 0.01)
    found = answers(causal[None, None], pieces_of(tokens(), 4)[None])[0, 0]
    assert found[0].tolist() == [-1, 0, -1, 1]
    assert found[1].tolist() == [1, 3, -1, -1]
    assert looks_ahead(WEIGHTS[None, None])
    assert not looks_ahead(causal[None, None])


def slow(given, name: str | None, right) -> tuple[list[int], list[int]]:
    """Sentence by sentence how many edges of a relation there are and how many are `right`."""
    counts, rights = [], []
    for edges, found in given:
        mine = [edge for edge in edges if edge[2] == name or (name is None and edge[2] != "punct")]
        counts.append(len(mine))
        rights.append(sum(right(found, dependent, head) for dependent, head, _ in mine))
    return counts, rights


def by_head(i: int, j: int, k: int):
    if tuple(Direction)[k] is Direction.STRONGEST:
        return lambda found, dependent, head: bool(found[i, j, 0, head] == dependent)
    return lambda found, dependent, head: bool(found[i, j, k, dependent] == head)


def by_offset(offset: int):
    return lambda found, dependent, head: dependent + offset == head


PLACES = [(i, j, k) for i in range(len(made.LAYERS)) for j in range(len(made.HEADS)) for k in range(3)]


@pytest.mark.parametrize("name", [*made.NAMES, None])
def test_accuracies_and_the_best_of_them_are_those_of_a_slow_loop(name: str | None) -> None:
    tally, given = made.tally()
    relations, overall = ranked(tally, (made.LAYERS, made.HEADS))
    place = len(made.NAMES) if name is None else made.NAMES.index(name)
    found = overall if name is None else relations[place]
    whole = tally.halves[0] + tally.halves[1]
    values = shares(whole.right, whole.count)
    best: tuple[float, tuple[int, int, int]] = (-1.0, (0, 0, 0))
    for i, j, k in PLACES:
        counts, rights = slow(given, name, by_head(i, j, k))
        assert values[i, j, k, place] == pytest.approx(sum(rights) / sum(counts))
        if sum(rights) / sum(counts) > best[0]:
            best = sum(rights) / sum(counts), (i, j, k)
    assert (found.count, found.sentences) == (sum(counts), sum(count > 0 for count in counts))
    assert found.best.accuracy == pytest.approx(best[0])
    i, j, k = best[1]
    told = made.LAYERS[i], made.HEADS[j], tuple(Direction)[k]
    assert (found.best.layer, found.best.head, found.best.direction) == told
    fixed = {offset: sum(slow(given, name, by_offset(offset))[1]) for offset in FIXED_DISTANCES}
    of_offsets = shares(whole.distance_right, whole.count)[:, place]
    assert of_offsets == pytest.approx([fixed[offset] / sum(counts) for offset in FIXED_DISTANCES])
    assert found.baseline.fixed_distance == max(FIXED_DISTANCES, key=lambda offset: fixed[offset])
    before = sum(slow(given, name, lambda found, dependent, head: head < dependent)[1])
    assert found.before == pytest.approx(before / sum(counts))


def test_a_head_finds_the_dependent_it_attends_to_most_though_another_word_attends_more() -> None:
    """0 is asked of 2, its head, and of 3, which attends to it more."""
    weights = torch.tensor([[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.5, 0.3, 0.2, 0], [0.8, 0.1, 0.1, 0]])
    given = answers(weights[None, None], torch.eye(4, dtype=torch.bool)[None])[0].numpy()[None]
    assert given[0, 0, :, 0].tolist() == [-1, 1], "neither of the other two directions has 2"
    tally = Tally(1, 1, ("nsubj", "obj"))
    tally.add(0, [(0, 2, "nsubj"), (1, 2, "obj")], given)
    assert tally.halves[0].right[0, 0].tolist() == [[0, 0, 0], [0, 1, 1], [1, 0, 1]]


@pytest.mark.parametrize("name", ["det", "nsubj", None])
def test_what_is_held_out_was_never_chosen_on(name: str | None) -> None:
    tally, given = made.tally()
    relations, overall = ranked(tally, (made.LAYERS, made.HEADS))
    found = (overall if name is None else relations[made.NAMES.index(name)]).held_out
    assert found is not None
    chosen, sums, differences, counts = [], np.zeros(2), [], []
    offset = max(
        FIXED_DISTANCES, key=lambda each: sum(slow(given, name, by_offset(each))[1])
    )  # of all: its advantage
    for half in (0, 1):
        own, other = given[half::2], given[1 - half :: 2]
        place = max(PLACES, key=lambda at: (sum(slow(own, name, by_head(*at))[1]), -PLACES.index(at)))
        chosen.append((made.LAYERS[place[0]], made.HEADS[place[1]], tuple(Direction)[place[2]]))
        count, right = slow(other, name, by_head(*place))
        _, fixed = slow(other, name, by_offset(offset))
        sums += sum(right), sum(fixed)
        differences += [a - b for a, b in zip(right, fixed, strict=True)]
        counts += count
    total = sum(counts)
    assert found.heads == tuple(chosen)
    assert found.accuracy == pytest.approx(sums[0] / total)
    gain = (sums[0] - sums[1]) / total
    kept = [(d, n) for d, n in zip(differences, counts, strict=True) if n]
    scatter = sum((d - gain * n) ** 2 for d, n in kept)
    error = math.sqrt(scatter * len(kept) / (len(kept) - 1)) / total
    assert found.above_control == pytest.approx(gain)
    assert (found.low, found.high) == pytest.approx((gain - 1.959964 * error, gain + 1.959964 * error))


def test_the_best_of_many_guessing_heads_looks_good_and_falls_when_it_is_held_out() -> None:
    tally, _ = made.tally()
    for half in tally.halves:
        half.right[1, 2, 0] = 0  # the head that is really right
    _, overall = ranked(tally, (made.LAYERS, made.HEADS))
    whole = tally.halves[0] + tally.halves[1]
    chance = float(shares(whole.right, whole.count)[..., -1].mean())
    assert overall.held_out is not None
    assert overall.best.accuracy > max(overall.held_out.accuracy, 1.15 * chance)
    assert abs(overall.held_out.accuracy - chance) < overall.best.accuracy - chance


def test_words_of_one_sentence_are_no_independent_trials_and_an_interval_is_wilsons() -> None:
    """Two sentences of a hundred edges, one all right and one all wrong, are worth one trial and no more."""
    tally = Tally(1, 1, ("det",))
    edges = [(i, i + 5, "det") for i in range(100)]
    heads = np.array([head for _, head, _ in edges])
    found = np.full((1, 1, 2, 105), -1)
    found[..., :100] = heads
    tally.add(0, edges, found)
    tally.add(1, edges, np.full_like(found, -1))
    (relation,), _ = ranked(tally, ((0,), (0,)))
    assert relation.best.accuracy == 0.5
    variance = ((100 - 0.5 * 100) ** 2 + (0 - 0.5 * 100) ** 2) * 2 / 1 / 200**2
    assert (relation.best.low, relation.best.high) == pytest.approx(wilson(0.5, 0.25 / variance))
    assert relation.best.high - relation.best.low > 0.85
    assert wilson(0.5, 10.0) == pytest.approx((0.2366, 0.7634), abs=1e-4)  # Newcombe 1998
    assert wilson(1.0, 10.0) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10.0) == pytest.approx((0.0, 0.2775), abs=1e-4)
