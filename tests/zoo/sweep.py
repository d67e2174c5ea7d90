"""The sweep: every model type of the installed transformers, each in a process of its own.

    python -m tests.zoo.sweep [--only PATTERN] [--jobs 2] [--tsv FILE] [--write|--check FILE]

`--write` makes `docs/models.md`; `--check` ends with 1 where a type no longer stands as that file says, which
the gate asks of all of them.
"""

import argparse
import datetime
import multiprocessing
import os
import re
import signal
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

SECONDS = 60  # for one type


def surveyed(model_type: str) -> "Survey":
    """The survey of one type, whatever goes wrong told in `reason`."""
    receive, send = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.get_context("fork").Process(target=_work, args=(model_type, send))
    worker.start()
    send.close()
    try:
        return (
            receive.recv() if receive.poll(SECONDS) else Survey(model_type, reason=f"not done in {SECONDS} s")
        )
    except EOFError:
        worker.join()
        return Survey(model_type, reason=f"the process ended with {worker.exitcode}")
    finally:
        worker.kill()
        worker.join()
        receive.close()


def _work(model_type: str, send: Connection) -> None:
    signal.alarm(SECONDS)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  until the process ends
    import torch

    torch.set_num_threads(1)
    from .configs import NotBuildable
    from .specimen import build
    from .survey import survey

    stage = "build"
    try:
        specimen = build(model_type)
        stage = "read"
        result = survey(specimen)
        for seed in (1, 2, 3):  # other weights, where these leave a fault unseen
            if result.verdict == "inconclusive":
                result = min(result, survey(build(model_type, seed)), key=_unseen)
    except NotBuildable as error:
        result = Survey(model_type, reason=f"not built: {error}")
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        result = Survey(model_type, reason=f"{stage}: {told} ({where})")
    send.send(result)
    send.close()


def _unseen(result: "Survey") -> tuple[int, int]:
    """How much a survey leaves open: other verdicts than inconclusive first, then the layers that are."""
    return int(result.verdict not in ("certified", "inconclusive")), result.verdicts.get("inconclusive", 0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--tsv")
    options.add_argument("--write")
    options.add_argument("--check")
    given = options.parse_args()
    started = time.monotonic()
    chosen = [each for each in model_types() if re.fullmatch(given.only or ".*", each)]
    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(surveyed, chosen))
    if given.tsv:
        with open(given.tsv, "w") as file:
            for each in found:
                row = (
                    each.model_type, each.architecture, each.verdict, ",".join(each.routes),
                    ",".join(each.kinds), each.sites, each.layers, each.verdicts, f"{each.weight_error:.1e}",
                    f"{each.power:.3g}", each.faintest, each.same_output, f"{each.matched}/{each.returned}",
                    ",".join(each.silent), ",".join(each.special), each.notes, each.reason,
                )  # fmt: skip
                print(*row, sep="\t", file=file)
    counts = Counter(standing(each) for each in found)
    seconds = time.monotonic() - started
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()), f"in {seconds:.0f} s")
    if given.write:
        Path(given.write).write_text(document(found, datetime.date.today().isoformat(), seconds), "utf-8")
    if given.check:
        changed = worse(standings(Path(given.check).read_text("utf-8")), found)
        print(*changed, sep="\n")
        sys.exit(bool(changed))


if __name__ == "__main__":
    import transformers

    transformers.logging.set_verbosity_error()
    import torch  # noqa: F401  imported once, before the processes part

    from .configs import model_types
    from .survey import Survey
    from .table import document, standing, standings, worse

    main()
