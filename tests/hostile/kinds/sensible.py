"""Commands that are sound, or nearly so: what the other kinds spoil at one place."""

from functools import cache
from random import Random
from typing import Any

from .. import draw

COMMANDS = ("heads", "tsne", "predict", "compare", "report", "verify", "model")
READING = ("heads", "tsne", "predict", "compare", "report", "verify")
FOCUSED = ("heads", "tsne", "compare", "report")
MODELS = ("demo", "demo-causal", "demo-translate")
SUFFIXES = (".png", ".svg", ".pdf", ".npz", ".csv", ".json")

SENSIBLE: dict[str, tuple[str, ...]] = {
    "--layer": ("0", "1", "3", "-1", "0,1", "0-2", "all"),
    "--head": ("0", "2", "11", "-1", "0,3,7", "all"),
    "--layer-b": ("0", "2"),
    "--kind": ("encoder", "decoder", "cross"),
    "--tower": ("text_model", "vision_model", "encoder"),
    "--block": ("0", "1"),
    "--route": ("takeover", "custom", "traced", "returned"),
    "--query": ("0", "1", "it", "door", "[MASK]", "r1c1", "0.20s", "mean", "the@1"),
    "--compare-query": ("1", "watching", "it"),
    "--key": ("0", "door", "watching", "[SEP]"),
    "--word": ("door", "1", "the"),
    "--word-b": ("it", "2"),
    "--show": ("weights", "scores", "scaled", "q", "k", "v", "output"),
    "--measure": ("entropy", "distance", "all", "entropy,distance"),
    "--special": ("show", "hide", "renormalise"),
    "--generate": ("1", "3"),
    "--model": MODELS,
    "--model-b": MODELS,
    "--device": ("cpu", "auto"),
    "--dtype": ("float32", "bfloat16", "float16", "float64", "auto"),
    "--revision": ("main",),
    "--attn": ("eager", "sdpa"),
    "--perplexity": ("2", "5", "30"),
    "--metric": ("cosine", "euclidean"),
    "--seed": ("0", "3"),
    "--max-iter": ("250", "300"),
    "--top": ("1", "5"),
    "--length": ("16", "100000"),
    "--pair": draw.PLAIN,
    "--target": ("le chat", "a"),
    "--target-b": ("le chien", "b"),
    "--decimals": ("1", "4", "15"),
    "--example": (
        "dictionary",
        "fruit",
        "tensors",
        "tensors-identity",
        "tensors-sharp",
        "theatre",
        "why-scale",
    ),
    "--scoring": ("scaled-dot", "dot", "additive"),
    "--ids": ("1,2,3", "5 6 7"),
    "--adapter": ("none",),
}


@cache
def parameters(command: str) -> tuple[Any, ...]:
    """The options of a command as the program itself declares them, new ones too."""
    from typer.main import get_command

    from attnscope.cli.app import app

    return tuple(
        each
        for each in get_command(app).commands[command].params
        if each.param_type_name == "option" and each.name != "help"
    )


def name_of(option: Any) -> str:
    return max(option.opts, key=len)


def is_path(option: Any) -> bool:
    """Whether its value names a file or a folder."""
    metavar = option.metavar or ""
    return metavar == "FILE" or "FOLDER" in metavar


def command(rng: Random, among: tuple[str, ...] = READING, model: str | None = None) -> list[str]:
    """A command with what it needs, most of the time without an error."""
    chosen = rng.choice(among)
    named = model or rng.choice(MODELS)
    if chosen == "model":
        return [chosen, named]
    made = [chosen, rng.choice(draw.PLAIN)]
    made += ["-m", named]
    if chosen == "compare":
        made += [rng.choice(draw.PLAIN), "--word", rng.choice(["1", "2", "door", "the"])]
    if chosen in FOCUSED and rng.random() < 0.8:
        made += ["--layer", rng.choice(["0", "1", "-1"]), "--head", rng.choice(["0", "1", "-1"])]
    return made + extras(rng, chosen)


def extras(rng: Random, chosen: str) -> list[str]:
    """A few sensible options more."""
    made: list[str] = []
    if rng.random() < 0.4:
        made.append("--json")
    for option in rng.sample(parameters(chosen), rng.choice([0, 0, 1, 2])):
        name = name_of(option)
        if option.is_flag and name not in ("--json", "--trust-remote-code", "--allow-pickle"):
            made.append(name)
        elif name in (
            "--query",
            "--key",
            "--show",
            "--special",
            "--measure",
            "--dtype",
            "--attn",
            "--metric",
            "--top",
        ):
            made += [name, rng.choice(SENSIBLE[name])]
    return made


def written(rng: Random, chosen: str) -> list[str]:
    """`-o` with a name that this command has a form for."""
    suffixes = SUFFIXES[3:] if chosen in ("predict", "verify") else SUFFIXES
    return [] if chosen in ("model", "measures") else ["-o", f"made{rng.choice(suffixes)}"]
