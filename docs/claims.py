"""What the articles say, asked of the bundled model: the rows of the README's table, made by running it."""

from collections.abc import Callable
from typing import Any

Ask = Callable[..., dict[str, Any]]

BLANKS = {
    "I was watching the [MASK] when it opened.": "a thing that opens",
    "I was watching the door when [MASK] opened.": "*it*",
    "I [MASK] a person.": "a verb that fits",
}
SHOP = "I am going to the supermarket."
APPLES, MOTHER = "I would like to buy apples.", "And that is how I met your mother."
DOOR = "I was watching the door when [MASK] opened."
BANKS = ("I love rivers and sat on the bank.", "The bank can be tiring without money in the account.")


def table(ask: Ask) -> str:
    """The table; `ask` runs a command of the program on the demo model and returns its JSON."""
    rows = [*_blanks(ask), _supermarket(ask), _map(ask), _theatre(ask), _bank(ask)]
    lines = ["| the articles | the demo model |", "|---|---|"]
    return "\n".join(lines + [f"| {claim} | {answer} |" for claim, answer in rows])


def _blanks(ask: Ask) -> list[tuple[str, str]]:
    rows = []
    for text, wanted in BLANKS.items():
        (blank,) = ask("predict", text)["blanks"]
        guesses = ", ".join(f"{guess['text']} {guess['probability']:.2f}" for guess in blank["guesses"])
        rows.append((f"“{text}” wants {wanted}", guesses))
    return rows


def _supermarket(ask: Ask) -> tuple[str, str]:
    apples, mother = (
        ask("predict", SHOP, "--pair", second)["next_sentence"]["probability"] for second in (APPLES, MOTHER)
    )
    claim = f"“{SHOP}” is followed rather by “{APPLES}” than by “{MOTHER}”"
    return claim, f"{apples:.3f} against {mother:.3f}"


def _map(ask: Ask) -> tuple[str, str]:
    found = ask("tsne", DOOR, "--layer", "3", "--head", "11")
    names = [token["label"] for token in found["key_tokens"]]
    mask, watching, door = (names.index(name) for name in ("[MASK]", "watching", "door"))
    distance, weights = found["distance"], found["weights"]
    answer = (
        f"L3 H11: cosine distance {distance[mask][door]:.2f} against {distance[watching][door]:.2f}, "
        f"weight {weights[mask][door]:.2f} against {weights[watching][door]:.2f}"
    )
    return f"“{DOOR}”: the query *[MASK]* lies closer to the key *door* than *watching* does", answer


def _theatre(ask: Ask) -> tuple[str, str]:
    pairs = {(pair["query"], pair["key"]): pair for pair in ask("sdpa", "--example", "theatre")["pairs"]}
    wanted = [("watch", "movie"), ("movie", "watch"), ("theatre", "watch"), ("watch", "theatre")]
    ranks = ", ".join(f"{query} → {key} {pairs[query, key]['rank']}" for query, key in wanted)
    claim = (
        "In “Bill is going to the theatre to watch a new movie”, *watch* goes with *movie* and with *theatre*"
    )
    count = pairs[wanted[0]]["pairs"]
    return claim, f"first layer, head 11, rank among {count} weights: {ranks}"


def _bank(ask: Ask) -> tuple[str, str]:
    found = ask("compare", *BANKS, "--word", "bank")
    cosines = [f"{value:.2f}" for value in found["cosine"]["value"]["together"]]
    return (
        "*bank* by a river and *bank* with an account become two different vectors",
        f"cosine of the two value vectors, layer by layer: {', '.join(cosines)}",
    )
