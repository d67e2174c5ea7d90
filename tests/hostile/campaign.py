"""The campaign: hypothesis draws lines, files and surroundings, and makes smaller what something is found of.

What kinds draw comes from a generator of hypothesis, so that every choice of theirs can be made simpler. One
in 20 invocations runs twice, one in 200 the second time in a process of its own with other hashes.
"""

import shlex
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from hypothesis import HealthCheck, Phase, example, given, seed, settings
from hypothesis import strategies as any_
from hypothesis.database import ExampleDatabase

from . import process
from .found import FOUND
from .invocation import Invocation, Outcome
from .kinds import KINDS
from .material import BUNDLED, Material
from .oracle import Finding, differences, findings
from .place import Place, remove

REPEATED, APART, TOLD = 20, 200, 250
Case = tuple[str, Callable[[Path, Material], Invocation]]  # of a kind, and what makes it


@dataclass
class Record:
    """What was run and found so far."""

    ends: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # by kind, command and exit code
    repeats: int = 0
    seconds: float = 0.0
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by kind, command and cause

    def whole(self) -> str:
        runs = self.ends.total()
        rate = runs / max(self.seconds, 1e-9)
        return f"{runs} runs, {self.repeats} of them twice, {self.seconds:.0f} s, {rate:.2f} a second"

    def table(self) -> Iterator[tuple[object, ...]]:
        """A row for each kind and one for each command: runs, exit codes, findings."""
        for part in (0, 1):
            for name in sorted({key[part] for key in self.ends}):
                codes = Counter[int]()
                for key, count in self.ends.items():
                    codes[key[2]] += count * (key[part] == name)
                wrong = sum(count for key, count in self.found.items() if key[part] == name)
                listed = ", ".join(f"{code}: {count}" for code, count in codes.most_common() if count)
                yield f"`{name}`" if part == 0 else f"`attnscope {name}`", codes.total(), listed, wrong


class Campaign:
    """The folders to work in, and a warm process that is forked."""

    def __init__(self, material: Material, database: ExampleDatabase) -> None:
        self.material, self.record, self._database = material, Record(), database
        self._root = Path(tempfile.mkdtemp(prefix="hostile-"))
        self._root.chmod(0o755)
        self.place = Place(self._root / "work")
        self.place.root.mkdir()
        process.warm_up(self.place, self._first())

    def close(self) -> None:
        remove(self._root)

    def _first(self) -> Iterator[Invocation]:
        """Invocations that import what most others need."""
        media = self.material.media()
        pictures = ("-o", "a.png", "-o", "a.pdf", "-o", "a.svg")
        for argv in (
            ("report", "a b c", "-m", "demo", "--layer", "0", "--head", "0", *pictures),
            *(("predict", "a b c", "-m", name) for name in BUNDLED),
            ("heads", "--image", str(media / "square.png"), "-m", str(self.material.folder("clip"))),
            ("heads", "--audio", str(media / "tone.wav"), "-m", str(self.material.folder("whisper"))),
        ):
            self.place.clear()
            yield Invocation(argv)

    def run(self, runs: int, number: int, kind: str | None = None) -> list[BaseException]:
        """What was found: each cause an error of its own, which tells the smallest invocation that has it."""
        found = list[BaseException]()

        def one(case: Case) -> None:
            self.place.clear()
            invocation = case[1](self.place.current, self.material)
            invocation = replace(invocation, argv=tuple(each.replace("\0", "") for each in invocation.argv))
            before = set(self.record.found)
            outcome, wrong = self._judged(invocation, case[0])
            if self.record.ends.total() % TOLD == 0 or set(self.record.found) - before:
                print(self.record.whole(), *wrong[:1], flush=True)
            error = _error(f"{wrong[0].sort}: {wrong[0].cause}") if wrong else None
            if error and error not in map(type, found):
                raise error("\n".join(_shown(case[0], invocation, outcome, wrong)))

        phases, known = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink), -1
        # hypothesis ends soon after it has found something: on, past what is known
        while known < len(found) and (left := runs - self.record.ends.total()) > 0:
            how = settings(
                max_examples=left,
                deadline=None,
                database=None if found else self._database,
                phases=phases[2:] if found else phases,
                suppress_health_check=list(HealthCheck),
            )
            drawn, known = how(given(cases(kind))(one)), len(found)
            for each in FOUND if kind is None else ():
                drawn = example(("found", lambda *_, each=each: each))(drawn)
            try:
                seed(number + known)(drawn)()
            except (AssertionError, BaseExceptionGroup) as error:
                found += _each(error)
        return found

    def _judged(self, invocation: Invocation, kind: str) -> tuple[Outcome, list[Finding]]:
        start, drawn = time.monotonic(), zlib.crc32(repr(invocation).encode())
        timed = invocation.interrupt is not None or invocation.kill is not None
        repeated = drawn % REPEATED == 0 and not timed and not invocation.homeless
        if repeated:
            self.place.remember()
        outcome = process.run(invocation, self.place)
        found = findings(invocation, outcome)
        if invocation.kill is not None:  # the same asked again, among all that was left
            self.place.go_on()
            again = replace(invocation, kill=None)
            found += findings(again, process.run(again, self.place))
        if repeated and not found:
            self.place.go_back()
            found = self._again(invocation, outcome, drawn % APART == 0)
        command = invocation.argv[0] if invocation.argv and invocation.argv[0] in _commands() else "other"
        self.record.repeats += repeated
        self.record.ends[kind, command, outcome.code] += 1
        self.record.found.update((kind, command, f"{each.sort}: {each.cause}") for each in found)
        self.record.seconds += time.monotonic() - start
        return outcome, found

    def _again(self, invocation: Invocation, first: Outcome, apart: bool) -> list[Finding]:
        # nobody may have no way to the interpreter, which a server that forks has in memory
        in_memory = invocation.unprivileged or "PYTHONIOENCODING" in invocation.environment
        if apart and not invocation.cold and not in_memory:
            hashed = {**invocation.environment, "PYTHONHASHSEED": "7"}
            invocation = replace(invocation, cold=True, environment=hashed)
        return differences(first, process.run(invocation, self.place), invocation.verbose)


@any_.composite
def cases(draw: any_.DrawFn, kind: str | None) -> Case:
    shares = [name for name, (_, share) in KINDS.items() for _ in range(share) if kind in (None, name)]
    name = draw(any_.sampled_from(shares))
    return name, partial(KINDS[name][0], draw(any_.randoms(use_true_random=False)))


@cache
def _error(cause: str) -> type[AssertionError]:
    """One type for each cause: by it hypothesis tells them apart, and makes each smaller for itself."""
    return type(cause, (AssertionError,), {})


def _each(error: BaseException) -> Iterator[BaseException]:
    """The errors that hypothesis put together."""
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _each(inner)
    if not isinstance(error, BaseExceptionGroup):
        yield error


@cache
def _commands() -> frozenset[str]:
    from .commands import parameters

    return frozenset(parameters())


def _shown(kind: str, invocation: Invocation, outcome: Outcome, found: list[Finding]) -> Iterator[str]:
    """Everything about one invocation, with nothing in it that could steer a terminal."""
    typed = shlex.join(each[:300] for each in ("attnscope", *invocation.argv))
    yield f"kind {kind}: {_escaped(typed)}"
    yield repr({name: value for name, value in vars(invocation).items() if name != "argv" and value})
    yield f"exit {outcome.code} after {outcome.seconds:.2f} s {outcome.stopped}, left {outcome.left}"
    for name, content in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        yield f"--- {name}\n{_escaped(content.decode('utf-8', 'replace')[-2000:])}"
    for finding in found:
        yield f"--- {finding.sort}: {finding.cause}\n{_escaped(finding.detail[-2000:])}"


def _escaped(text: str) -> str:
    return "\n".join(line.encode("unicode_escape").decode() for line in text.split("\n"))
