"""The campaign: invocations by number, what was found, and the record of it.

Number N of a seed is made by a generator that is seeded with both, so it is the same in every run and can be
repeated alone. Every 20th runs twice, every 200th the second time in a process of its own with other hashes.
"""

import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from . import process
from .invocation import Invocation, Outcome
from .kinds import KINDS, kind_of
from .material import Material
from .oracle import Finding, differences, findings
from .place import Place, remove

REPEATED, APART = 20, 200


@dataclass
class Record:
    """What was run and found so far."""

    ends: Counter[tuple[str, int]] = field(default_factory=Counter)  # by kind and exit code
    repeats: int = 0
    seconds: float = 0.0
    found: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    wrong: Counter[str] = field(default_factory=Counter)  # findings by kind

    @classmethod
    def logged(cls, *logs: Path) -> "Record":
        """What slices of a campaign found together, out of their logs."""
        record = cls()
        for told in (json.loads(line) for log in logs for line in log.read_text("utf-8").splitlines()):
            causes = [(each["sort"], each["cause"]) for each in told["findings"]]
            record.add(told["number"], told["kind"], told["code"], told["seconds"], causes)
            record.repeats += told["twice"]
        return record

    def add(
        self, number: int, kind: str, code: int, seconds: float, causes: Iterable[tuple[str, str]]
    ) -> None:
        self.ends[kind, code] += 1
        self.seconds += seconds
        for cause in causes:
            self.found[cause].append(number)
            self.wrong[kind] += 1

    @property
    def runs(self) -> int:
        return self.ends.total()

    def by_kind(self) -> dict[str, Counter[int]]:
        """The exit codes of each kind, the most frequent first."""
        kinds: dict[str, Counter[int]] = defaultdict(Counter)
        for (kind, code), count in self.ends.most_common():
            kinds[kind][code] += count
        return dict(sorted(kinds.items()))

    def whole(self) -> str:
        rate = self.runs / max(self.seconds, 1e-9)
        return f"{self.runs} runs, {self.repeats} of them twice, {self.seconds:.0f} s, {rate:.2f} a second"

    def lines(self) -> Iterator[str]:
        yield self.whole()
        for kind, codes in self.by_kind().items():
            yield f"{kind} {codes.total()}, by exit code {_listed(codes)}"
        yield f"findings: {sum(map(len, self.found.values()))} of {len(self.found)} causes"
        for (sort, cause), numbers in sorted(self.found.items(), key=lambda item: -len(item[1])):
            yield f"  {len(numbers):5} x {sort}: {cause}   [{', '.join(map(str, numbers[:5]))}]"


def _listed(codes: Counter[int]) -> str:
    return ", ".join(f"{code}: {count}" for code, count in codes.items())


def table(record: Record) -> Iterator[tuple[object, ...]]:
    """A row for each kind: runs, exit codes, findings."""
    for kind, codes in record.by_kind().items():
        yield f"`{kind}`", codes.total(), _listed(codes), record.wrong[kind]


class Campaign:
    """One seed, the folders to work in, and a warm process."""

    def __init__(self, seed: int, material: Material, keep: Path | None = None) -> None:
        self.seed, self.material = seed, material
        self._root = keep or Path(tempfile.mkdtemp(prefix="hostile-"))
        self._root.mkdir(parents=True, exist_ok=True)
        self._root.chmod(0o755)
        self.place = Place(self._root / "work")
        self.place.root.mkdir(exist_ok=True)
        self._kept = keep is not None
        self.place.clear()
        process.warm_up(self.place, self._first())

    def close(self) -> None:
        if not self._kept:
            remove(self._root)

    def _first(self) -> Iterator[Invocation]:
        """Invocations that import what most others need."""
        media = self.material.media()
        pictures = ("-o", "a.png", "-o", "a.pdf", "-o", "a.svg")
        for argv in (
            ("report", "a b c", "-m", "demo", "--layer", "0", "--head", "0", *pictures),
            ("predict", "a b c", "-m", "demo-causal"),
            ("predict", "a b c", "-m", "demo-translate"),
            ("heads", "--image", str(media / "square.png"), "-m", str(self.material.folder("clip"))),
            ("heads", "--audio", str(media / "tone.wav"), "-m", str(self.material.folder("whisper"))),
        ):
            self.place.clear()
            yield Invocation(argv)

    def kind(self, number: int) -> str:
        return kind_of(self._random(number))

    def _random(self, number: int) -> Random:
        return Random(f"{self.seed}/{number}")

    def prepared(self, number: int) -> tuple[str, Invocation]:
        """The invocation, with the current folder as it wants it."""
        rng = self._random(number)
        kind = kind_of(rng)
        self.place.clear()
        made = KINDS[kind][0](rng, self.place.current, self.material)
        argv = tuple(each.replace("\0", "") for each in made.argv)
        return kind, replace(made, argv=argv)

    def run(self, number: int, record: Record) -> tuple[Invocation, Outcome, list[Finding]]:
        start = time.monotonic()
        kind, invocation = self.prepared(number)
        outcome = process.run(invocation, self.place)
        found = findings(invocation, outcome)
        if invocation.kill is not None:
            found += self._afterwards(invocation)
        if number % REPEATED == 0 and not found and _repeatable(invocation):
            record.repeats += 1
            found = self._again(number, outcome)
        causes = [(finding.sort, finding.cause) for finding in found]
        record.add(number, kind, outcome.code, time.monotonic() - start, causes)
        return invocation, outcome, found

    def _afterwards(self, invocation: Invocation) -> list[Finding]:
        """What is found where the same is asked again after a kill, among all that was left by it."""
        self.place.go_on()
        again = replace(invocation, kill=None)
        return findings(again, process.run(again, self.place))

    def _again(self, number: int, first: Outcome) -> list[Finding]:
        _, invocation = self.prepared(number)
        apart = number % APART == 0 and not invocation.cold
        # nobody may have no way to the interpreter, which a server that forks has in memory
        if apart and not invocation.unprivileged and "PYTHONIOENCODING" not in invocation.environment:
            hashed = {**invocation.environment, "PYTHONHASHSEED": "7"}
            invocation = replace(invocation, cold=True, environment=hashed)
        return differences(first, process.run(invocation, self.place), invocation.verbose)


def _repeatable(invocation: Invocation) -> bool:
    """Not where a moment decides."""
    return invocation.interrupt is None and invocation.kill is None


def told(
    seed: int,
    number: int,
    kind: str,
    invocation: Invocation,
    outcome: Outcome,
    found: list[Finding],
    twice: bool,
) -> str:
    """One line of the log."""
    findings = [{"sort": each.sort, "cause": each.cause, "detail": each.detail[-3000:]} for each in found]
    line = {
        "seed": seed,
        "number": number,
        "kind": kind,
        "code": outcome.code,
        "seconds": round(outcome.seconds, 2),
        "twice": twice,
        "argv": [each[:200] for each in invocation.argv],
        "stopped": outcome.stopped,
        "findings": findings,
    }
    repeat = {"repeat": f"python -m tests.hostile --seed {seed} --only {number}"} if found else {}
    return json.dumps(line | repeat)
