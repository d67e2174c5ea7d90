"""What is said of a ranking of heads and of its controls, the same in a terminal, a picture and a table."""

import math

import numpy as np

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.header import attention_words
from attnscope.render.kit.words.weights import JOINED, WITHOUT_SPECIAL
from attnscope.results import Contents, Finding, Pattern, Special, Verdict
from attnscope.results.claims.finding import Account
from attnscope.tokens import Patches, Tokens

_PATTERNS = {
    Pattern.PREVIOUS: "the previous token",
    Pattern.NEXT: "the next token",
    Pattern.SELF: "the token itself",
    Pattern.FIRST: "the first token",
    Pattern.SAME: "the same token elsewhere",
    Pattern.INDUCTION: "what followed the same token before",
    Pattern.PUNCTUATION: "punctuation",
    Pattern.SPECIAL: "special tokens",
}
_BESIDE = {Pattern.PREVIOUS: "the patch to the left", Pattern.NEXT: "the patch to the right"}


def subject(result: Finding) -> str:
    """What heads are ranked by: `weight of 7 [MASK] → 5 door`."""
    sought = result.sought
    if sought.like is not None:
        layer, head = sought.like
        return f"Jensen-Shannon divergence from L{layer} H{head} in nats"
    if sought.pattern is not None:
        return f"weight on {pattern_words(result, sought.pattern)}, mean of {counted(result.rows, 'query')}"
    assert sought.query is not None, "a pair, where nothing else is sought"
    assert sought.key is not None, "a pair has both"
    query, key = _named(result.query_tokens, sought.query), _named(result.key_tokens, sought.key)
    return f"weight of {query} → {key}"


def pattern_words(result: Finding, pattern: Pattern) -> str:
    """The keys that are meant, as they are called of words, patches or frames."""
    tokens, part = result.key_tokens, result.controls.of.part
    if not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches):
        words = _BESIDE.get(pattern, _PATTERNS[pattern])
    else:
        words = _PATTERNS[pattern]
    if tokens.texts or not tokens.stretches:
        return words.replace("token", "word") if result.words and pattern is not Pattern.SPECIAL else words
    named = {Pattern.FIRST: "the first key", Pattern.SPECIAL: "the model's own tokens"}
    return named.get(pattern, words.replace("token", part))


def account_name(result: Finding, place: tuple[int, int]) -> str:
    """What half of a head's weight stays with: the place, the word (patch, frame), or this text alone."""
    of = result.controls.of
    names = {Account.PLACE: "place", Account.WORD: of.part, Account.TEXT: of.value}
    account = result.account(place)
    return "" if account is None else names[account]


def _named(tokens: Tokens, position: int) -> str:
    return f"{tokens.positions[position]} {settled(tokens.names[position])}"


def place_words(result: Finding) -> str:
    """Which attention was looked at."""
    part = f" of {result.tower}" if result.tower else ""
    return f"{attention_words(result.kind)}{part}"


def head_name(result: Finding, place: tuple[int, int]) -> str:
    return f"L{result.layers[place[0]]} H{result.heads[place[1]]}"


def value_text(result: Finding, value: float, decimals: int = 2) -> str:
    """A weight as `.98`; a divergence, which may be above 1 in no case but starts with 0, alike."""
    return "-" if math.isnan(value) else weight_text(value, decimals)


def signed_text(value: float, decimals: int = 2) -> str:
    """`+.79`, `-.02`; what rounds to nothing has no sign."""
    if math.isnan(value):
        return "-"
    text = f"{value:+.{decimals}f}"
    return text[1:].replace("0.", ".") if not text.strip("+-0.") else text.replace("0.", ".", 1)


def range_text(result: Finding, place: tuple[int, int]) -> str:
    """`.01-.90`, the middle nine tenths of the controls."""
    ends = (result.controls.low[place], result.controls.high[place])
    return "-".join(value_text(result, float(each)) for each in ends)


def best_words(result: Finding) -> str:
    """The best of so many heads, beside the best head of the control texts: a maximum beside a maximum."""
    controls, count = result.controls, counted(result.weights.size, "head")
    if not result.ranking:
        return f"none of {count} has a number"
    best = result.ranking[0]
    own = value_text(result, float(result.weights[best]))
    low, high = (value_text(result, float(each)) for each in np.quantile(controls.best, (0.05, 0.95)))
    mean = value_text(result, float(controls.best.mean()))
    beaten = round(result.best_percentile * controls.count / 100)
    than = "farther" if result.smaller_is_better else "less"
    return (
        f"the best of {count}, {head_name(result, best)}, has {own}; the best head of a control has "
        f"{mean} ({low}-{high}), {than} than that in {beaten} of {controls.count}"
    )


def above_words(result: Finding) -> str:
    """The head that its own controls are farthest from."""
    place = result.most_above
    if place is None:
        return ""
    own, mean = (value_text(result, float(each[place])) for each in (result.weights, result.controls.mean))
    side = "below" if result.smaller_is_better else "above"
    change = signed_text(float(result.difference[place]))
    return f"farthest {side} its own controls: {head_name(result, place)}, {change} ({own} against {mean})"


def controls_words(result: Finding) -> str:
    """What the controls are."""
    controls = result.controls
    texts = counted(controls.count, controls.of.value)
    short = "" if controls.count == controls.asked else f" (of {controls.asked} asked for: there are no more)"
    return f"control: the same in {texts} of the same shape{short}, seed {controls.seed}: {controls.how}"


def column_words(result: Finding) -> str:
    """What the columns are."""
    own = result.controls.of.value
    told = ["90 %: the middle nine tenths of the controls", f"beats: how many of them the {own} goes beyond"]
    if result.ranks is not None:
        of = "of that key" if result.sought.pattern is None else "of the strongest such key, mean,"
        told.insert(0, f"rank: {of} in its row")
    if result.shares is not None:
        moved = "what all pieces move together" if result.words else "what is moved"
        told.insert(1, f"norm: share of its row by weight x ||f(x)||, {moved} (Kobayashi et al. 2020)")
    if result.followed is not None and result.sought.key is not None:
        name = settled(result.key_tokens.names[result.sought.key])
        told.append(f"follows: what the query gives to {name} in the controls, wherever it went")
    return "; ".join(told)


def account_words(result: Finding) -> str:
    """What a head is said to look at, by what of its weight is left in the controls."""
    if result.smaller_is_better:
        return ""
    of = result.controls.of
    told = [f"place, where half of the weight or more stays whatever the {_plural(of)}"]
    if result.followed is not None:
        own = "token" if of is Contents.TEXT else of.part
        told.append(f"{of.part}, where as much goes with the key's {own}")
    return f"by: {'; '.join([*told, f'{of.value}, where it does not'])}"


def _plural(of: Contents) -> str:
    return {Contents.TEXT: "words", Contents.PICTURE: "patches", Contents.SOUND: "frames"}[of]


def remarks(result: Finding) -> list[str]:
    """What has to be known to read the numbers."""
    told = [column_words(result), *([words] if (words := account_words(result)) else [])]
    pattern, key = result.sought.pattern, result.sought.key
    if pattern is not None and pattern.of_places:
        told.append(
            "this pattern is about places, which stay: a control near the weight says that a head looks "
            f"there whatever the {_plural(result.controls.of)}"
        )
    if key is not None and result.key_tokens.items[key].special:
        others = _plural(result.controls.of)
        told.append(f"the key is a special token, which stays: the controls have other {others} around it")
    if result.words:
        told.append(JOINED)
    if result.special is not Special.SHOW:
        hidden = "special tokens left out, rows keep what they hold"
        told.append(WITHOUT_SPECIAL if result.special is Special.RENORMALISE else hidden)
    even = None if result.even is None else result.even[~np.isnan(result.even)]
    if even is not None and even.size:
        least, most = (value_text(result, float(each)) for each in (even.min(), even.max()))
        told.append(f"all keys alike: {least if least == most else f'{least}-{most}'}")
    return told


def verdict_counts(result: Finding) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict."""
    every = [verdict for layer in result.verdicts for verdict in layer]
    total = counted(len(every), "head")
    total += " by tokens" if result.words or result.special is not Special.SHOW else ""
    return [
        (verdict, f"{GLYPHS[verdict]} {verdict.value}: {every.count(verdict)} of {total}")
        for verdict in Verdict
        if verdict in every
    ]
