"""Mutants held against tests, each in a child that is forked off a warm process.

All of it happens in a copy of the checkout. `Spliced` has every test in memory, and its children exchange the
changed function in place. What is felt by importing only (defaults, decorators, constants of a module) is
written into the copy: a child of `Imported` has all other packages in memory, and imports ours. (To import
ours once more where it was imported before will not do: type checkers remember classes by name.)
"""

import gc
import importlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutation.mutants import Mutant
from tests.mutation.reach import Follow, Reach
from tests.mutation.splice import functions_of, splice

_QUIET = ("-q", "-s", "-p", "no:cacheprovider", "--no-header", "--tb=line", "-W", "ignore")
_MEMORY = 8 << 30  # bytes of data that a mutant may ask for
_PATIENCE = 1500  # seconds by the clock, for what waits instead of working
_PASSED, _FAILED, _IMPORT = 0, 1, 90


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: `killed`, `timeout`, `survived` or `unreached`, and the test that told."""

    fate: str
    test: str = ""


def copied(checkout: Path, root: Path) -> Path:
    """What is needed of a checkout to run its tests, under `root`."""
    for name in ("attnscope", "tests"):
        shutil.copytree(checkout / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(checkout / "pyproject.toml", root)
    return root


def with_tests(root: Path, tests: Iterable[str], work: Callable[[pytest.Session], None]) -> None:
    """Collects `tests` of the copy, as pytest does, and then does `work` instead of running them."""
    _enter(root)

    class Instead:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            work(session)
            return True

    code = pytest.main([*_QUIET, *tests], plugins=[Instead()])
    if code not in (0, 5):
        raise SystemExit(f"pytest ended with {code}")


def _enter(root: Path) -> None:
    """Makes the copy the place that ours is imported from."""
    os.chdir(root)
    sys.path.insert(0, str(root))
    os.environ["PYTHONPATH"] = str(root)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # this program, which lies in the checkout


class _Trial:
    """The copy under `root`, what is known of its tests, and the seconds of tests that a mutant may take."""

    def __init__(self, root: Path, budget: float) -> None:
        self.root, self.budget = root, budget
        self.told, self.log = root / "told.txt", root / "log.txt"
        self.killers: Counter[str] = Counter()
        self.sound: set[str] = set()  # tests that pass without a change, also by themselves
        self.reach = Reach()

    def outcome(self, module: str, mutant: Mutant) -> Outcome | None:
        """A module with one change, held against the tests that run it; None where it cannot be made here."""
        tests = self._ordered(self.reach.tests(module, mutant.reached))
        if not tests:
            return Outcome("unreached")
        found = self._changed(module, mutant, tests)
        if found is not None and found.test and found.test not in self.sound:
            if self._unchanged([found.test]) != Outcome("survived"):
                raise SystemExit(f"{found.test} fails by itself:\n{self.log.read_text()[-2000:]}")
            self.sound.add(found.test)
        if found is not None:
            self.killers[found.test] += 1
        return found

    def _changed(self, module: str, mutant: Mutant, tests: list[str]) -> Outcome | None:
        raise NotImplementedError

    def _unchanged(self, tests: list[str]) -> Outcome | None:
        raise NotImplementedError

    def _ordered(self, tests: set[str]) -> list[str]:
        """Those that have killed before, then the quickest, as many as the budget allows."""
        seconds, spent, chosen = self.reach.seconds, 0.0, []
        for each in sorted(tests, key=lambda each: (-min(self.killers[each], 3), seconds[each], each)):
            spent += seconds[each]
            if spent > self.budget and chosen:
                break
            chosen.append(each)
        return chosen

    def _asked(self, ask: Callable[[], int]) -> Outcome | None:
        """What a child that asks the tests says; None where it could not make the change."""
        self.told.unlink(missing_ok=True)
        code = self._apart(ask)
        test = self.told.read_text() if self.told.exists() else ""
        if code in (_PASSED, _IMPORT):
            return Outcome("survived") if code == _PASSED else None
        if code > 2:
            raise SystemExit(f"a child ended with {code}:\n{self.log.read_text()[-2000:]}")
        return Outcome("timeout" if -code in (signal.SIGPROF, signal.SIGKILL) else "killed", test)

    def _apart(self, work: Callable[[], int]) -> int:
        """The exit code of `work` in a process of its own, or minus the signal that ended it."""
        child = os.fork()
        if child == 0:
            code = 91
            try:
                self._settle()
                code = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        ends = time.monotonic() + _PATIENCE
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)  # what it may have started
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > ends:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.01)

    def _settle(self) -> None:
        """In the child: its own group and output, and no more memory than there is."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)


class Spliced(_Trial):
    """Mutants of functions, tried on the tests of a session that is loaded already."""

    def __init__(self, root: Path, modules: Iterable[str], session: pytest.Session, budget: float) -> None:
        super().__init__(root, budget)
        self.session, self.modules = session, list(modules)
        self.items = {item.nodeid: item for item in session.items}
        self.reach = self._survey()
        import_all(self.reach.imported)
        self.functions = functions_of(root / module for module in self.modules)
        gc.freeze()  # so that children need not copy what they do not change

    def _survey(self) -> Reach:
        """Every test once."""

        def follow() -> int:
            plugin = Follow(self.root, self.modules)
            self.session.config.pluginmanager.register(plugin)
            plugin.coverage.start()
            self._run(list(self.items), {})
            self.told.write_text(plugin.found().to_json())
            return _PASSED

        if self._apart(follow) != _PASSED:
            raise SystemExit(f"the tests cannot be run:\n{self.log.read_text()[-2000:]}")
        return Reach.from_json(self.told.read_text()).without_failed()

    def _changed(self, module: str, mutant: Mutant, tests: list[str]) -> Outcome | None:
        path = self.root / module

        def ask() -> int:
            made = splice(path, self.functions[path], mutant.function, mutant.source)
            return self._run(tests, self.reach.seconds) if made else _IMPORT

        return self._asked(ask) if mutant.in_body else None

    def _unchanged(self, tests: list[str]) -> Outcome | None:
        return self._asked(lambda: self._run(tests, self.reach.seconds))

    def _run(self, tests: list[str], seconds: dict[str, float]) -> int:
        """In a child: `tests` in their order; with their `seconds`, until one fails or takes too long."""
        told = _Told(self.told)
        self.session.config.pluginmanager.register(told)
        items = [self.items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            if seconds:
                signal.setitimer(signal.ITIMER_PROF, 10 + 8 * seconds[item.nodeid])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if seconds and told.failed:
                return _FAILED
        return _PASSED


class Imported(_Trial):
    """Mutants that are felt by importing; of this process nothing of ours may be loaded."""

    def __init__(self, root: Path, reach: Reach, budget: float) -> None:
        super().__init__(root, budget)
        self.reach, self.written = reach, 0
        import_all(reach.imported)
        gc.freeze()

    def _changed(self, module: str, mutant: Mutant, tests: list[str]) -> Outcome:
        """Importing costs more than most tests: those that have killed before are asked alone at first."""
        path = self.root / module
        original, stamp = path.read_text(), path.stat().st_mtime
        self.written += 1
        path.write_text(mutant.source)
        os.utime(path, (stamp + self.written, stamp + self.written))  # else older bytecode may pass for it
        known = [test for test in tests if self.killers[test]]
        try:
            for some in (known, [test for test in tests if not self.killers[test]]):
                if some and (found := self._unchanged(some)) != Outcome("survived"):
                    return found
            return Outcome("survived")
        finally:
            path.write_text(original)
            os.utime(path, (stamp, stamp))

    def _unchanged(self, tests: list[str]) -> Outcome:
        def ask() -> int:
            _enter(self.root)
            sys.dont_write_bytecode = True
            signal.setitimer(signal.ITIMER_PROF, 60)
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            plugins = [_Chosen(tests, self.reach.seconds), _Told(self.told)]
            return int(pytest.main([*_QUIET, "-m", "", "-x", *files], plugins=plugins))

        return self._asked(ask) or Outcome("survived")


def import_all(names: Iterable[str]) -> None:
    """What tests need of other packages, so that children find it in memory."""
    for name in names:
        with suppress(Exception):  # names made up by a library
            importlib.import_module(name)


class _Told:
    """A plugin that writes down which test failed."""

    def __init__(self, file: Path) -> None:
        self.file, self.failed = file, False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = True
            self.file.write_text(report.nodeid)


class _Chosen:
    """A plugin that leaves only some tests, in their order, each with the time that it may take."""

    def __init__(self, tests: list[str], seconds: dict[str, float]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 10 + 8 * self.seconds[nodeid])
