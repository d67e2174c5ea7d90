"""Where a cold start of `attnscope heads` goes, as whole processes, beside the plain script of transformers.

    python benchmarks/startup.py [RUNS]

One head of a checkpoint of bert-base size, random weights made on the spot, 11 tokens. Each round runs all
in turn: the plain script, attnscope, the same with a picture, and attnscope with one measure that makes it
faster after the other switched off. Ratios first: seconds are those of the
processor, user and system, medians over the rounds, so that other work on the machine counts little. Byte
code is kept in a folder of its own, as it is where packages were installed. The last line is `--help` beside
`import typer, rich`.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import ATTNSCOPE, MAKE_CHECKPOINT, PEER

LIMITS = {"seconds": 0.6, "memory": 0.6, "picture": 0.25}
SWITCHES = {"garbage looked for as ever": "ATTNSCOPE_COLLECT"}
Cost = tuple[float, float]  # seconds of the processor, MiB


def main() -> int:
    """Print the ratios, then the medians; the exit code says whether a limit was missed."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    with tempfile.TemporaryDirectory() as work:
        folder = str(Path(work) / "model")
        subprocess.run([sys.executable, "-c", MAKE_CHECKPOINT, folder], check=True, capture_output=True)
        commands = _commands(folder, str(Path(work) / "head.png"))
        environment = settings(work)
        for command, switch in commands.values():  # byte code is made, files are in memory
            _cost(command, environment | switch)
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, (command, switch) in commands.items():
                costs[name].append(_cost(command, environment | switch))
    return _told({name: _median(each) for name, each in costs.items()}, rounds)


def _commands(folder: str, picture: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    text = " ".join(["door"] * 9)
    ours = [ATTNSCOPE, "heads", text, "-m", folder, "--layer", "3", "--head", "11"]
    return {
        "plain script": ([sys.executable, "-c", PEER, folder, text], {}),
        "attnscope": (ours, {}),
        "with a picture": ([*ours, "-o", picture], {}),
        **{name: (ours, {switch: "1"}) for name, switch in SWITCHES.items()},
        "--help": ([ATTNSCOPE, "--help"], {}),
        "import typer, rich": ([sys.executable, "-c", "import typer, rich"], {}),
    }


def settings(work: str) -> dict[str, str]:
    """The environment of every process: one thread, no hub, folders of their own for what is kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ATTNSCOPE_DIGESTS": "off"}
    return kept | own | {"PYTHONPYCACHEPREFIX": str(Path(work) / "code")}


def _cost(command: list[str], environment: dict[str, str]) -> Cost:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed:\n{said.decode()}")
    return usage.ru_utime + usage.ru_stime, _mebibytes(usage)


def _mebibytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def _median(costs: list[Cost]) -> Cost:
    seconds, memory = zip(*costs, strict=True)
    return statistics.median(seconds), statistics.median(memory)


def _told(costs: dict[str, Cost], rounds: int) -> int:
    peer, ours, picture = (costs[name] for name in ("plain script", "attnscope", "with a picture"))
    ratios = {
        "seconds": ours[0] / peer[0],
        "memory": ours[1] / peer[1],
        "picture": (picture[0] - ours[0]) / peer[0],
    }
    print(f"cold, in units of the plain script ({rounds} rounds)")
    for name, ratio in ratios.items():
        print(f"  {name:<10}{ratio:6.2f}   at most {LIMITS[name]}")
    print("medians")
    for name, (seconds, memory) in costs.items():
        print(f"  {name:<40}{seconds:7.2f} s {memory:7.0f} MiB")
    return int(any(ratio > LIMITS[name] for name, ratio in ratios.items()))


if __name__ == "__main__":
    sys.exit(main())
