"""Which test runs which line: found out in one run of all tests, by coverage with a context for each."""

import functools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Reach:
    """What is known of the tests: the seconds of processor that each takes, and those that run each line.

    `lines[module][line]` are the tests that run it once everything is imported; `imported` are the modules of
    other packages that they needed.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    imported: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def tests(self, module: str, reached: Iterable[int] | None) -> set[str]:
        """The tests that run one of these lines; all where the change is felt by importing the module."""
        if reached is None:
            return set(self.seconds)
        by_line = self.lines.get(module, {})
        return set().union(*(by_line.get(line, ()) for line in reached))

    def without_failed(self) -> "Reach":
        """The same without the tests that fail already."""
        seconds = {test: spent for test, spent in self.seconds.items() if test not in self.failed}
        lines = {m: {n: tests & seconds.keys() for n, tests in e.items()} for m, e in self.lines.items()}
        return replace(self, seconds=seconds, lines=lines)

    def to_json(self) -> str:
        lines = {m: {n: sorted(tests) for n, tests in each.items()} for m, each in self.lines.items()}
        return json.dumps({**vars(self), "lines": lines})

    @classmethod
    def from_json(cls, text: str) -> "Reach":
        stored = json.loads(text)
        by_line = stored.pop("lines")
        lines = {m: {int(n): set(tests) for n, tests in each.items()} for m, each in by_line.items()}
        return cls(lines=lines, **stored)


class Follow:
    """A plugin for the run that finds out.

    What a fixture of a module runs is put to every test that asks for it, and what files of tests keep in a
    `functools.cache` is forgotten between them, so that no test hides what another one needs.
    """

    def __init__(self, root: Path, modules: Iterable[str]) -> None:
        import coverage

        self.root, self.modules, self.reach = root, list(modules), Reach()
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(root / module) for module in self.modules]
        )
        self.asks: dict[str, set[str]] = {}
        self.context = ""
        ours = str(root / "tests")
        files = {str(getattr(module, "__file__", "")): module for module in list(sys.modules.values())}
        loaded = [m for file, m in files.items() if file.startswith(ours) and Path(file).name[:5] == "test_"]
        values = [value for module in loaded for value in vars(module).values()]
        self.caches = [value for value in values if isinstance(value, functools._lru_cache_wrapper)]

    def _switch(self, context: str) -> None:
        self.context = context
        self.coverage.switch_context(context)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for each in self.caches:
            each.cache_clear()
        self.asks[item.nodeid] = {f"fixture {name}" for name in getattr(item, "fixturenames", ())}
        self._switch(item.nodeid)
        before = time.process_time()
        result = yield
        self.reach.seconds[item.nodeid] = time.process_time() - before
        self._switch("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        test = self.context
        self._switch(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._switch(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.reach.failed.append(report.nodeid)

    def found(self) -> Reach:
        """What the run has shown."""
        self.coverage.stop()
        data = self.coverage.get_data()
        asking: dict[str, set[str]] = defaultdict(set)
        for test, fixtures in self.asks.items():
            for name in fixtures:
                asking[name].add(test)
        for module in self.modules:
            by_line = data.contexts_by_lineno(str(self.root / module))
            self.reach.lines[module] = {
                line: set().union(*(asking[c] if c.startswith("fixture ") else {c} for c in contexts if c))
                for line, contexts in by_line.items()
            }
        # not what lies in the copy: that is changed
        files = {name: str(getattr(module, "__file__", None) or "") for name, module in sys.modules.items()}
        self.reach.imported = [name for name, file in files.items() if not file.startswith(str(self.root))]
        return self.reach
