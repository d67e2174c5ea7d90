"""What is said about the relations of a treebank, the same in a terminal and in a picture."""

import numpy as np

from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.results import Dependencies, Verdict
from attnscope.results.claims.relations import Direction, HeldOut, Relation
from attnscope.tokens import printable

LEAST = 20  # edges of a relation that is shown: of fewer the best of many heads says little
ARROWS = {Direction.FROM_DEPENDENT: "→", Direction.FROM_HEAD: "←"}


def subject(result: Dependencies) -> str:
    """`relations of dev.conllu`, or `nsubj in dev.conllu`."""
    name = printable(result.treebank.name)
    return f"{printable(result.shown)} in {name}" if result.shown else f"relations of {name}"


def setting(result: Dependencies) -> str:
    """Model and attention."""
    part = f" of {printable(result.tower)}" if result.tower else ""
    return f"{model_words(result.provenance)} · {attention_words(result.kind)}{part}"


def read_words(result: Dependencies) -> str:
    """How much was read, and what the best was chosen from."""
    bank = result.treebank
    edges = sum(each.count for each in result.relations)
    heads = len(result.layers) * len(result.heads)
    return (
        f"{bank.scored:,} of {bank.sentences:,} sentences, {edges:,} edges · the best of {result.tried} "
        f"({counted(heads, 'head')}, two directions)"
    )


def left_out(result: Dependencies) -> str:
    """Why sentences and edges do not count, "" where all do."""
    bank = result.treebank
    told = {
        "without an edge": bank.without_relation,
        f"longer than {bank.limit} tokens": bank.too_long,
        "that cannot be read": bank.unreadable,
    }
    parts = [f"{counted(count, 'sentence')} {why}" for why, count in told.items() if count]
    if bank.edges_without_piece:
        parts.append(f"{counted(bank.edges_without_piece, 'edge')} of words without a piece")
    return f"left out: {', '.join(parts)}" if parts else ""


def shown_relations(result: Dependencies) -> list[Relation]:
    """Those with enough edges, or all where none has; most frequent first, all but punctuation at the end."""
    enough = [each for each in result.relations if each.count >= LEAST]
    return [*(enough or result.relations), result.overall]


def rare_words(result: Dependencies) -> str:
    """How many relations are not shown, "" for none."""
    rare = len(result.relations) - len(shown_relations(result)) + 1
    return f"{counted(rare, 'relation')} with fewer than {LEAST} edges: in the files" if rare else ""


def finder(relation: Relation) -> str:
    """`L2 H8 →`."""
    return f"{relation.best.name} {ARROWS[relation.best.direction]}"


def share(value: float) -> str:
    """`.87`; nothing of what is not there."""
    return "-" if value != value else weight_text(value)


def signed(value: float) -> str:
    """`+.21`."""
    return f"{'-' if value < 0 else '+'}{weight_text(abs(value))}"


def legend(result: Dependencies) -> list[str]:
    """What the columns say."""
    told = [
        "→ the dependent attends most to its head; ← its head attends most to it",
        "offset: the head stands so many words further on (-: before)",
        "held out: head chosen on every other sentence, judged on the rest, both ways",
        "[ ]: 95 %, by scatter over sentences; ?: head and offset cannot be told apart",
    ]
    if not result.ahead:
        told.insert(1, causal_words(result))
    return told


def causal_words(result: Dependencies) -> str:
    """What causality allows."""
    before = result.overall.before
    return (
        f"no head looks ahead: → can find heads that stand before ({before:.0%} of all), ← those behind; "
        "all edges count, and offsets look both ways"
    )


def beaten_words(result: Dependencies) -> str:
    """The relations for which no head is better than the best offset."""
    beaten = [printable(each.name) for each in shown_relations(result)[:-1] if each.beaten]
    if not beaten:
        return "no relation shown has an offset that is as good as its best head"
    return f"an offset is as good as every head, or better: {', '.join(beaten)}"


def told_apart_words(result: Dependencies) -> str:
    """How many relations have a head that is really better, by the sentences that are left out."""
    shown = shown_relations(result)[:-1]
    better = sum(each.told_apart > 0 for each in shown)
    worse = [printable(each.name) for each in shown if each.told_apart < 0]
    told = f"on sentences held out the head is better for {better} of {counted(len(shown), 'relation')}"
    told += f", the offset for {len(worse)}" + (f" ({', '.join(worse)})" if worse else "")
    return f"{told}; the others cannot be told apart"


def certified_words(result: Dependencies) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict in the sentences that were certified."""
    total, of = sum(result.certified.values()), f"{result.sampled} of {result.treebank.scored:,} sentences"
    return [
        (
            verdict,
            f"{verdict.value}: {count} of {total} heads in {of}; read alone, these give the same weights to "
            f"{result.unlike:.1g}",
        )
        for verdict in Verdict
        if (count := result.certified.get(verdict.value))
    ]


def heads_words(result: Dependencies, relation: Relation) -> str:
    """What the grid of all heads shows."""
    better = int((result.by_head(relation.name) > relation.baseline.accuracy).sum())
    return (
        f"{printable(relation.name)}: {relation.count:,} edges in {relation.sentences:,} sentences · best "
        f"{finder(relation)} {share(relation.best.accuracy)} · offset {relation.baseline.offset:+d} "
        f"{share(relation.baseline.accuracy)} · {better} of {result.tried} are better than that"
    )


def reach(held: HeldOut) -> str:
    """The interval of the gain; of sentences that do not scatter, none."""
    return "" if held.unknown else f" [{signed(held.low)} {signed(held.high)}]"


def held_words(relation: Relation) -> str:
    """How the head does on sentences that it was not chosen on; "" where these are too few."""
    held = relation.held_out
    if held is None:
        return ""
    gain = f"{signed(held.difference)}{reach(held)}"
    judged = "chosen on every other sentence, judged on those between"
    return f"{judged}: {share(held.accuracy)}, {gain} beside the offset"


def direction_words(direction: Direction) -> str:
    """The heading of a grid."""
    told = {
        Direction.FROM_DEPENDENT: "→ from the dependent: the word that it attends to most",
        Direction.FROM_HEAD: "← from the head: the word that attends to the dependent most",
    }
    return told[direction]


def ranked_heads(result: Dependencies, relation: Relation) -> list[tuple[int, int, Direction, float]]:
    """Layer, head, direction and accuracy of every head, best first, those that are alike in their order."""
    values = result.by_head(relation.name)
    order = np.argsort(-values, axis=None, kind="stable")
    ways = tuple(Direction)
    return [
        (result.layers[i], result.heads[j], ways[k], float(values[i, j, k]))
        for i, j, k in np.array(np.unravel_index(order, values.shape)).T.tolist()
    ]
