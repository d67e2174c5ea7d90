"""Real pretrained checkpoints through seven commands: what each answers, and what of it is certified.

    python benchmarks/real/run.py FOLDER [NAME ...]

FOLDER holds what `make.py` makes, under the names of `CHECKPOINTS`. Each command is a process of its own on
the CPU. Its exit code, seconds, line of proof and first sentence are printed. Where one fails the exit code
is 1. Nothing is downloaded.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MARKS = ("✓", "≈", "~", "✗", "!", "?")


@dataclass(frozen=True)
class Checkpoint:
    """A text that the model was trained to read, a link in it, and what is asked about it."""

    given: tuple[str, ...]
    link: tuple[str, str] | None = None
    which: tuple[str, ...] = ()  # of several kinds of attention the one that is asked

    def commands(self, picture: Path) -> dict[str, tuple[str, ...]]:
        """What is run, without the model."""
        link = () if self.link is None else ("--from", self.link[0], "--to", self.link[1])
        return {
            "verify": ("verify", *self.given),
            "heads": ("heads", *self.given, *self.which),
            "find": ("find", *self.given, *self.which, *link),
            "ablate": ("ablate", *self.given, *self.which),
            "predict": ("predict", *self.given),
            "why": ("why", *self.given, *self.which, *link),
            "report": ("report", *self.given, *self.which, "-o", str(picture)),
        }


SPOKEN = Path(__file__).with_name("gold.wav").resolve()
STORE = "When Mary and John went to the store, John gave a drink to"
ANTIBODY = "E V Q L V E S G G G L V Q P G G S L R L S [MASK] A A S G F T F S"
REACTION = "CC(=O)Cl.CCN>>CC[MASK]C(C)=O"
CHECKPOINTS = {
    "smollm2-135m": Checkpoint((STORE,), ("to@13", "Mary")),
    "gemma3-270m": Checkpoint((STORE,), ("-1", "Mary")),
    "whisper-tiny-en": Checkpoint(("--audio", str(SPOKEN)), ("door", "2.6s"), ("--kind", "cross")),
    "quire-distilbert": Checkpoint(("Their going to the store has many apple.",), ("Their", "going")),
    "rxnmapper-albert": Checkpoint((REACTION,), ("[MASK]", "N")),
    "rxnfp-bert": Checkpoint((REACTION,), ("[MASK]", "N")),
    "antiberty": Checkpoint((ANTIBODY,), ("[MASK]", "21")),
    "iglm-gpt2": Checkpoint(("E V Q L V E S G G G L V Q P G G",), ("-1", "5")),
    "splade-tiny": Checkpoint(("The doctor gave the [MASK] some medicine.",), ("[MASK]", "doctor")),
}


def main() -> None:
    """Run every command on every checkpoint that is there, and print a table of Markdown."""
    folder, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or list(CHECKPOINTS)
    wrong = 0
    print("| checkpoint | command | exit | s | proof | first sentence |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as made:
        for name in names:
            model = next((each for each in (folder / name, folder / f"{name}.gguf") if each.exists()), None)
            if model is None:
                print(f"| {name} | | | | not there | |")
                continue
            for command, given in CHECKPOINTS[name].commands(Path(made) / f"{name}.png").items():
                began = time.monotonic()
                ended = run([*given, "-m", str(model)], folder)
                lines = ended.stdout.splitlines() or ended.stderr.splitlines()[-1:]
                proof = next((line for line in lines if line.startswith(MARKS)), "")
                first = lines[0] if lines else ""
                cells = [name, command, ended.returncode, f"{time.monotonic() - began:.0f}", proof, first]
                print("|", " | ".join(str(cell).replace("|", "\\|") for cell in cells), "|", flush=True)
                wrong += ended.returncode != 0
    sys.exit(wrong > 0)


def run(given: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """One command, offline, on lines wide enough to hold a sentence."""
    environment = os.environ | {"COLUMNS": "400", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "attnscope", *given]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
