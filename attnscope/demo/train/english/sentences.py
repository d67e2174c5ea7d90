"""Single sentences of the artificial language: lower-case, split by spaces.

Lower case and spaces because the tokenizer lower-cases and splits anyway. Every pattern has a weight: how
often it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable

from attnscope.demo.train.english import plain_patterns, pronoun_patterns, sense_patterns
from attnscope.demo.train.english.phrases import Speaker

Pattern = Callable[[Speaker], str]
PATTERNS: dict[Pattern, int] = {
    pronoun_patterns.watched: 12,
    pronoun_patterns.noticed: 7,
    pronoun_patterns.beside: 9,
    pronoun_patterns.company: 8,
    pronoun_patterns.encounter: 9,
    pronoun_patterns.owner_and_thing: 8,
    pronoun_patterns.handled_twice: 5,
    pronoun_patterns.called: 5,
    pronoun_patterns.belongings: 8,
    pronoun_patterns.gift: 4,
    pronoun_patterns.far_away: 4,
    plain_patterns.happened: 9,
    plain_patterns.did: 8,
    plain_patterns.resembles: 4,
    plain_patterns.identity: 5,
    plain_patterns.errand: 5,
    plain_patterns.wish: 3,
    plain_patterns.chores: 3,
    pronoun_patterns.exists: 3,
    pronoun_patterns.crossing: 3,
    plain_patterns.relative: 4,
    sense_patterns.money_bank: 2,
    sense_patterns.river_bank: 2,
    sense_patterns.green_plant: 2,
    sense_patterns.working_plant: 2,
    plain_patterns.job: 3,
    plain_patterns.thought: 2,
    plain_patterns.how: 2,
    plain_patterns.several: 4,
}
_DRAW = tuple(pattern for pattern, weight in PATTERNS.items() for _ in range(weight))


def sentence(s: Speaker) -> str:
    """One marked sentence of a pattern chosen by its weight."""
    return s.pick(_DRAW)(s)
