"""Short names for the towers of a model: what of their module paths tells them apart."""

from collections import Counter
from collections.abc import Sequence


def tower_names(patterns: Sequence[str]) -> dict[str, str]:
    """The shortest part of each path that no other one has in its place; nothing where there is only one.

    `vision_model.encoder.layers.*.self_attn` beside `text_model.encoder...` is `vision_model`. The place
    of a layer in its list (a star) tells nothing.
    """
    distinct = list(dict.fromkeys(patterns))
    words = {pattern: [word for word in pattern.split(".") if word != "*"] for pattern in distinct}
    if len(distinct) == 1:
        return dict.fromkeys(distinct, "")
    return {pattern: _shortest(pattern, words) for pattern in distinct}


def _shortest(pattern: str, words: dict[str, list[str]]) -> str:
    """One word that is its own, else the first words that together are, else the whole path."""
    mine = words[pattern]
    shared = Counter(word for others in words.values() for word in set(others))
    if own := [word for word in mine if shared[word] == 1]:
        return own[0]
    others = [set(each) for other, each in words.items() if other != pattern]
    telling = [word for word in mine if shared[word] < len(words)]
    for count in range(2, len(telling) + 1):
        if not any(set(telling[:count]) <= other for other in others):
            return ".".join(telling[:count])
    return pattern
