"""Which package may import which, and which packages own which library. `TYPE_CHECKING` counts as an import.

The two tables are the whole rule. Beside them: no circles between the parts of a package, at any depth.
"""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from attnscope.register import registered

ROOT = Path(__file__).parents[2]
# to all above
COMPUTING = "analysis attention capture measures arithmetic tiles verify"
EVERYWHERE = "register printable errors spelling spans tokens vocabulary incoming results version process"
MAY_IMPORT = {  # by package, lowest first; a package may only name those above it in this table
    "version": "",
    "presenter": "",
    "register": "",
    "printable": "",
    "process": "printable",
    "errors": "printable",
    "spelling": "printable errors",
    "spans": "errors spelling",
    "tokens": "printable errors spelling spans",
    "vocabulary": "errors",
    "incoming": "printable errors tokens process",
    "results": "register printable errors spelling tokens vocabulary incoming process presenter",
    "reference": "",
    "demo": "errors",
    "arithmetic": "reference results",
    "measures": "register reference results tokens printable errors",
    "attention": f"arithmetic reference {EVERYWHERE}",
    "verify": f"attention arithmetic reference {EVERYWHERE}",
    "tiles": f"verify attention arithmetic measures reference {EVERYWHERE}",
    "model": f"demo reference {EVERYWHERE}",
    "capture": f"model tiles verify attention reference {EVERYWHERE}",
    "analysis": f"capture model tiles verify attention arithmetic measures reference {EVERYWHERE}",
    "session": f"analysis capture model verify attention measures reference {EVERYWHERE}",
    "render": f"demo {EVERYWHERE}",
    "verbs": f"session {COMPUTING} model reference {EVERYWHERE}",
    "library": f"verbs session analysis attention capture model {EVERYWHERE}",
    "explore": f"verbs session render measures {EVERYWHERE}",
    "cli": f"explore verbs library session render measures model {EVERYWHERE}",
    "__main__": f"cli {EVERYWHERE}",
}
ROLES = {  # of a module in the folder of a verb, by the last word of its name: the rules of that package hold
    "result": "results",
    **dict.fromkeys(("sheet", "page", "files", "script", "drawing"), "render"),
    "again": "render.script.again",
    "command": "cli",
    **dict.fromkeys(("library", "methods"), "library"),
}
FACES = (
    "results library explore"  # the core imports no verb; these name some for type checkers, or are in front
)
PROGRAMS = "render.script.again"  # which are written into files and run there, and never imported here
OWNERS = {  # of each library that takes time to load: nobody else may import it
    "torch": f"session verbs library {COMPUTING} demo model reference {PROGRAMS}",
    "transformers": f"model capture demo {PROGRAMS}",
    "safetensors": "model",
    "tokenizers": "demo",
    "huggingface_hub": "model verbs.corpus.store.hub",
    "accelerate": "model",
    "jinja2": "model.inputs.rendered render.words",
    "markupsafe": "render.words",  # which jinja2 is made with
    "peft": "model",
    "fsspec": "verbs.corpus.store.remote",
    "filelock": "verbs.corpus.folder",
    "platformdirs": "process",
    "PIL": "demo.train model render.present",
    "soundfile": "model",
    "soxr": "model",
    "sklearn": "analysis verbs",
    "scipy": "analysis verbs demo.train",
    "threadpoolctl": "analysis verbs",
    "numpy": "analysis cli demo.train explore measures model render results session verbs",
    "jaxtyping": f"demo.train explore model render results session verbs {COMPUTING}",
    "matplotlib": "render results.base.presented",  # there for the types of what `plot` takes and returns
    "pandas": "render results",
    "pyarrow": "verbs.corpus",
    "ray": "verbs.corpus.engine.ray.cluster",
    "rich": "cli explore render verbs.corpus.command demo.train",
    "textual": "explore",
    "tqdm": "library.corpus",
    "typer": "cli",
}
INSIDE = {  # parts of a package that may not import another one
    "model.source": "model.anatomy model.inputs model.loaded model.loading model.media",
    "model.anatomy": "model.inputs model.loaded model.loading model.media",
    "model.inputs": "model.loaded model.loading model.media",
    "model.loaded": "model.loading model.media",
    "model.loading": "model.media",
    "model.media": "model.loading",
    "capture.following.takeover": "capture.trace capture.dry_run",
    "capture.trace": "capture.following.takeover capture.dry_run",
    "capture.dry_run": "capture.following.takeover capture.trace",
}
Imports = Mapping[str, set[str]]


def imported_by(source: str, ours: Collection[str]) -> set[str]:
    """What a module imports: modules of ours (without `attnscope.`), and names of other libraries."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: say in full where it is imported from"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            names += [each.value for each in node.args if isinstance(each, ast.Constant)]
    imported = set()
    for name in names:
        own = name.removeprefix("attnscope.")
        library = name.partition(".")[0]
        imported.add(library if own == name else own if own in ours else own.rpartition(".")[0] or own)
    return imported


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    package = ROOT / "attnscope"
    files = {
        ".".join(file.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): file
        for file in package.rglob("*.py")
    }
    return {module: file.read_text("utf-8") for module, file in files.items() if module != "__init__"}


@pytest.fixture(scope="module")
def imports(sources: Mapping[str, str]) -> Imports:
    return {module: imported_by(source, sources) for module, source in sources.items()}


def is_in(module: str, places: str) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places.split())


def placed(module: str) -> str:
    """The module under the package whose rules hold for it."""
    parts = module.split(".")
    if parts[0] != "verbs" or len(parts) < 2:
        return module
    role = "register" if len(parts) == 2 else ROLES.get(parts[2].rpartition("_")[2])
    return module if role is None else f"{role}.{parts[1]}"


def broken(imports: Imports) -> Iterator[str]:
    """Every import that the tables do not allow."""
    for module, imported in imports.items():
        package = placed(module).partition(".")[0]
        for name in imported:
            other = placed(name).partition(".")[0]
            if other in MAY_IMPORT:
                allowed = other == package or is_in(other, MAY_IMPORT[package])
                forbidden = any(is_in(module, part) and is_in(name, INSIDE[part]) for part in INSIDE)
            else:
                allowed = other in sys.stdlib_module_names or is_in(placed(module), OWNERS.get(other, ""))
                forbidden = False
            if forbidden or not allowed:
                yield f"{module} -> {name}"


def _part(module: str, inside: str) -> str:
    return (module.removeprefix(inside) if inside else placed(module)).partition(".")[0]


def circles(imports: Imports) -> Iterator[str]:
    """Every package whose parts import one another in a circle."""
    packages = {module.rpartition(".")[0] for module in imports} | {""}
    for package in packages:
        inside = f"{package}." if package else ""
        parts: dict[str, set[str]] = {}
        for module, imported in imports.items():
            if module.startswith(inside):
                part = _part(module, inside)
                others = {_part(name, inside) for name in imported if name.startswith(inside)}
                parts.setdefault(part, set()).update(others - {part})
        try:
            TopologicalSorter(parts).prepare()
        except CycleError as error:
            yield f"{package or 'attnscope'}: {' -> '.join(reversed(error.args[1]))}"


def test_every_import_is_allowed_by_the_tables(imports) -> None:
    assert list(broken(imports)) == []


def test_there_are_no_circles(imports) -> None:
    faces = {
        module: {name for name in named if not (is_in(module, FACES) and is_in(name, "verbs"))}
        for module, named in imports.items()
    }
    assert list(circles(faces)) == []


def to_verbs(imports: Imports) -> list[str]:
    """What the core imports of verbs."""
    outside = (module for module in imports if not is_in(module, f"verbs {FACES}"))
    return [f"{module} -> {name}" for module in outside for name in imports[module] if is_in(name, "verbs")]


def test_a_verb_imports_only_verbs_that_it_needs(imports) -> None:
    """Or what it does only where both are there: two corpora are compared by what `corpus` made of them."""
    beside = {("compare", "corpus")}
    found = {
        (module.split(".")[1], name.split(".")[1])
        for module, named in imports.items()
        for name in named
        if is_in(module, "verbs") and is_in(name, "verbs") and module != "verbs" != name
    }
    needed = {(name, other) for name, verb in registered().items() for other in verb.needs}
    assert {pair for pair in found if pair[0] != pair[1]} - beside == needed - {
        ("explore", each) for each in registered()
    }


def test_the_core_imports_no_verb(imports) -> None:
    assert to_verbs(imports) == []
    bad = {**imports, "session.reading": imports["session.reading"] | {"verbs.find.question"}}
    assert to_verbs(bad) == ["session.reading -> verbs.find.question"]


def test_the_table_of_packages_points_one_way_and_names_all_of_them(sources) -> None:
    assert {module.partition(".")[0] for module in sources} == set(MAY_IMPORT)
    order = list(MAY_IMPORT)
    for package, others in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(package) for other in others.split()), package


@pytest.mark.parametrize(
    ("module", "line", "reported"),
    [
        ("verify.certificate", "from attnscope.capture import run", "verify.certificate -> capture.run"),
        (
            "model.source.find",
            "from attnscope.model.loading import load",
            "model.source.find -> model.loading.load",
        ),
        ("cli.app", "from attnscope.analysis import prediction", "cli.app -> analysis.prediction"),
        ("tiles.tiling", "import textual.app", "tiles.tiling -> textual"),
        ("session.listener", "import rich", "session.listener -> rich"),
        ("verbs.corpus.engine.local", "import ray", "verbs.corpus.engine.local -> ray"),
        ("render.kit.palette", "def draw():\n    import torch", "render.kit.palette -> torch"),
        (
            "analysis.scores.dense",
            "if TYPE_CHECKING:\n    from matplotlib.axes import Axes",
            "analysis.scores.dense -> matplotlib",
        ),
        ("results.heads", "import a_library_nobody_owns", "results.heads -> a_library_nobody_owns"),
    ],
)
def test_a_line_that_breaks_the_tables_is_reported(module: str, line: str, reported: str, imports) -> None:
    bad = {**imports, module: imports[module] | imported_by(line, imports)}
    assert list(broken(bad)) == [reported]


def test_a_circle_of_two_parts_is_reported(imports) -> None:
    bad = {**imports, "tiles.tiling": imports["tiles.tiling"] | {"tiles.stream"}}
    assert "tiles" in [circle.partition(":")[0] for circle in circles(bad)]


@pytest.mark.parametrize("folder", ["benchmarks", "docs"])
def test_what_programs_beside_the_package_import_of_it_is_there(folder: str) -> None:
    nodes = [
        each
        for file in (ROOT / folder).rglob("*.py")
        for each in ast.walk(ast.parse(file.read_text("utf-8")))
    ]
    named = {
        (node.module, alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    ours = [(module, name) for module, name in named if (module or "").startswith("attnscope")]
    assert sum(hasattr(__import__(module, fromlist=[name]), name) for module, name in ours) == len(ours) > 0
