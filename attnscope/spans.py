"""Resolves names of tokens that a user types: words, several words, positions, roles, patches.

`door` and `the door` are words of the text, `door@5` those that begin at position 5, `door#2` the second
match; `5`, `-1` and `4-5` are positions unless a word has that name, while `@5`, `pos:4-5`, `pos:first`,
`pos:last` and `pos:all` always are. `role:user` is a message of a chat with the template's marks around it,
`role:user#2` the second one of that role. A patch is `r3c5` or `row 3, column 5`. Such names are read only
here.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from attnscope.errors import InputError, listed, nearest
from attnscope.spelling import IS_NO, Line, Pieces, section_named, shortened, spelled, told

_LISTED = 40  # tokens that a message names at most, about
_PIECES = 6  # of a span that a message names
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_RANGE = re.compile(r"(-?[0-9]{1,9})-(-?[0-9]{1,9})")
_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s")
_PATCH = re.compile(r"(?:patch )?row ([0-9]{1,9}),? col(?:umn)? ([0-9]{1,9})", re.IGNORECASE)
_MASK = re.compile(r"\[mask\]|<mask>", re.IGNORECASE)
_MASKS = re.compile(r"\[mask\]|<mask>|<extra_id_[0-9]+>", re.IGNORECASE)
_PLACES = "pos:"
_SECTION = re.compile(r"(role|field):", re.IGNORECASE)

Same = Callable[[str], str]


@dataclass(frozen=True)
class Span:
    """Tokens that a name refers to: their indices, ascending, at least one.

    `name` is their text for a reader, `5 door` or `4-5 the door`, and `pieces` that of each token.
    """

    positions: tuple[int, ...]
    name: str
    pieces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.positions)

    def one(self, why: str = "choose one of these") -> int:
        """The only position; `InputError` with `why` for several."""
        if len(self) > 1:
            some = [*self.pieces[:_PIECES], *(["..."] if len(self) > _PIECES else [])]
            raise InputError(f"'{self.name}' is {len(self)} tokens, {', '.join(some)}: {why}")
        return self.positions[0]


def span_of(tokens: Pieces, wanted: str | int) -> Span:
    """The tokens that `wanted` names; an int is a position.

    Raises `InputError` that lists the choices when nothing answers to it, or more than one place does.
    """
    found = _Names(tokens).meant(wanted) if isinstance(wanted, str) else _place(tokens, int(wanted))
    return Span(found, told(tokens, found), tuple(told(tokens, [i]) for i in found))


def every_span(tokens: Pieces, wanted: str) -> list[tuple[int, ...]]:
    """All matches of a name; empty without any."""
    return _Names(tokens).every(wanted)


class _Names:
    """Resolves names: words before pieces, exact spelling before others."""

    def __init__(self, tokens: Pieces) -> None:
        self.tokens = tokens

    def meant(self, wanted: str) -> tuple[int, ...]:
        if wanted.casefold().startswith(_PLACES):
            return self._stated(wanted)
        wanted = frame_at(patch_at(wanted), self.tokens.names)
        if (kind := _SECTION.match(wanted)) and (section := self._section(wanted, kind[1].casefold())):
            return section
        if wanted in self.tokens.labels:
            return (self.tokens.labels.index(wanted),)
        found = self._called(wanted)
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(self._several(wanted, found))
        by_count = self._counted(wanted)
        numbered = _numbered(self.tokens, wanted.removeprefix("@"))
        return self._at(wanted) or by_count or numbered or self._holding(wanted) or self._nothing(wanted)

    def every(self, wanted: str) -> list[tuple[int, ...]]:
        by_count = [] if self._called(wanted) else [self._counted(wanted)]
        return self._called(wanted) or [each for each in by_count if each]

    def _holding(self, wanted: str) -> tuple[int, ...] | None:
        words = r"\s+".join(map(re.escape, wanted.split()))
        held = {i: " ".join(each.text.split()) for i, each in enumerate(self.tokens.items) if each.is_long}
        for form in (rf"(?<!\w){words}(?!\w)", words) if words else ():
            for how in (0, re.IGNORECASE):
                found = [(i,) for i, text in held.items() if re.search(form, text, how)]
                if len(found) > 1:
                    places = ", ".join(told(self.tokens, each) for each in found[:_PIECES])
                    raise InputError(
                        f"'{wanted}' stands in {len(found)} of them, {places}: name it by number"
                    )
                if found:
                    return found[0]
        return None

    def _stated(self, wanted: str) -> tuple[int, ...]:
        """The positions after `pos:`: first, last, all, a number or a range."""
        place, count = wanted[len(_PLACES) :].casefold(), len(self.tokens)
        named = {"first": (0,), "last": (count - 1,), "all": tuple(range(count))}
        found = named.get(place) or _numbered(self.tokens, place)
        if found is None:
            raise InputError(f"no position '{wanted}': there are pos:first, pos:last, pos:all, pos:4-5")
        return found

    def _section(self, wanted: str, kind: str) -> tuple[int, ...] | None:
        there = self.tokens.sections if kind == "role" else self.tokens.fields
        if there:
            return section_named(self.tokens.positions, there, wanted)
        if self._called(wanted):
            return None
        why = "" if self.tokens.given is None or kind != "role" else self.tokens.given.no_roles
        raise InputError(f"no {kind} '{wanted}' in the input: {why or IS_NO[kind]}")

    def _called(self, wanted: str) -> list[tuple[int, ...]]:
        return next(filter(None, self._readings(wanted)), [])

    def _readings(self, wanted: str) -> Iterator[list[tuple[int, ...]]]:
        for whole in (True, False):
            for same in (str, str.casefold):
                yield sorted({*self._in_text(wanted, whole, same), *self._alone(wanted, whole, same)})
        if _MASK.fullmatch(wanted):  # in whatever spelling the model has for it
            items = enumerate(self.tokens.items)
            yield [(i,) for i, token in items if token.special and _MASKS.fullmatch(token.piece)]

    def _in_text(self, wanted: str, whole: bool, same: Same) -> Iterator[tuple[int, ...]]:
        words, line = r"\s+".join(map(re.escape, wanted.split())), self._line
        for match in re.finditer(words, line.text, 0 if same is str else re.IGNORECASE) if words else ():
            first, last = line.first.get(match.start()), line.last.get(match.end())
            if first is not None and last is not None and (not whole or line.whole(*match.span())):
                yield tuple(range(first, last + 1))

    def _alone(self, wanted: str, whole: bool, same: Same) -> Iterator[tuple[int, ...]]:
        wanted = same(wanted)
        for i, token in enumerate(self.tokens.items):
            forms = {same(token.name), same(token.text.strip()), same(token.piece)} - {""}
            if wanted in forms and (not whole or i in self._words):
                yield (i,)

    @cached_property
    def _line(self) -> Line:
        return Line(self.tokens, range(len(self.tokens)))

    @cached_property
    def _words(self) -> set[int]:
        line = self._line
        ends = {place: end for end, place in line.last.items()}
        return {i for start, i in line.first.items() if i in ends and line.whole(start, ends[i])}

    def _at(self, wanted: str) -> tuple[int, ...] | None:
        """The match of `door@5`: the one that begins at position 5."""
        name, _, number = wanted.rpartition("@")
        if not name or not _NUMBER.fullmatch(number):
            return None
        count = len(self.tokens)
        place = int(number) + count if -count <= int(number) < 0 else int(number)
        elsewhere = list[tuple[int, ...]]()
        for found in self._readings(name):
            if there := [each for each in found if self.tokens.positions[each[0]] == place]:
                return there[0]
            elsewhere = elsewhere or found
        if not elsewhere:
            return None
        stands = ", ".join(str(self.tokens.positions[each[0]]) for each in elsewhere[:_LISTED])
        raise InputError(f"no token '{wanted}' in the input: '{name}' stands at {stands}")

    def _counted(self, wanted: str) -> tuple[int, ...] | None:
        """The match of `door#2`: the second one."""
        name, _, number = wanted.rpartition("#")
        found = self._called(name) if name and _NUMBER.fullmatch(number) else []
        if found and not 1 <= int(number) <= len(found):
            times = "once" if len(found) == 1 else f"{len(found)} times"
            raise InputError(f"no token '{wanted}' in the input: '{name}' stands {times}, #1 is the first")
        return found[int(number) - 1] if found else None

    def _several(self, wanted: str, found: Sequence[tuple[int, ...]]) -> str:
        choices = ", ".join(self._label(each) for each in found[:_LISTED])
        more = ", ..." if len(found) > _LISTED else ""
        return f"token '{wanted}' stands {len(found)} times: choose one of {choices}{more}"

    def _label(self, places: tuple[int, ...]) -> str:
        if len(places) == 1:
            return self.tokens.labels[places[0]]
        return f"{shortened(spelled(self.tokens, places))}@{self.tokens.positions[places[0]]}"

    def _nothing(self, wanted: str) -> tuple[int, ...]:
        names = {name.casefold(): i for i, name in reversed([*enumerate(self.tokens.names)])}
        near = [names[name] for name in nearest(wanted.casefold(), names)]
        meant = "".join(f"the nearest is {told(self.tokens, [i])}; " for i in near)
        every = [told(self.tokens, [i]) for i in range(len(self.tokens))]
        if len(every) > _LISTED:
            every = [*every[: _LISTED // 2], "...", *every[-3:]]
        raise InputError(f"no token '{wanted}' in the input: {meant}tokens are {', '.join(every)}")


def _numbered(tokens: Pieces, wanted: str) -> tuple[int, ...] | None:
    """The positions of `5`, `-1` or `4-5`; None where the text is no number."""
    if _NUMBER.fullmatch(wanted):
        return _place(tokens, int(wanted))
    if not (ends := _RANGE.fullmatch(wanted)):
        return None
    (first,), (last,) = (_place(tokens, int(end)) for end in ends.groups())
    if last < first:
        raise InputError(f"no tokens {wanted} in the input: the first of them comes after the last")
    return tuple(range(first, last + 1))


def _place(tokens: Pieces, number: int) -> tuple[int]:
    if -len(tokens) <= number < 0:
        return (number % len(tokens),)
    if number not in tokens.positions:
        raise InputError(f"no token {number} in the input: positions {listed(tokens.positions)}")
    return (tokens.positions.index(number),)


def patch_at(wanted: str) -> str:
    """`r3c5` for `patch row 3, column 5`; other text unchanged."""
    named = _PATCH.fullmatch(wanted.strip())
    return f"r{int(named[1])}c{int(named[2])}" if named else wanted


def frame_at(wanted: str, names: Sequence[str]) -> str:
    """The name of the frame that contains a time such as `7.77s`; other text unchanged."""
    starts = {float(name[:-1]): name for name in names if _TIME.fullmatch(name)}
    if wanted in names or not starts or not _TIME.fullmatch(wanted):
        return wanted
    time, ascending = float(wanted[:-1]), sorted(starts)
    step = ascending[1] - ascending[0] if len(ascending) > 1 else 0.0
    begun = [start for start in ascending if start <= time < start + step + 1e-9]
    return starts[begun[-1]] if begun else wanted
