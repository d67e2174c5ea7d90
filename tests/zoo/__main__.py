"""`python -m tests.zoo [--only PATTERN]`: build every specimen, each in its own process, and list them."""

import argparse
import fnmatch
import json
import os
import signal
import time

LIMIT = 30  # seconds for one type


def attempt(model_type: str) -> dict[str, object]:
    """What came of one type: its class, figures, or the reason why not."""
    from . import NotBuildable, build

    start = time.perf_counter()
    try:
        made = build(model_type)
    except NotBuildable as error:
        return {"status": "no", "reason": str(error)}
    return {
        "status": "yes",
        "class": type(made.model).__name__,
        "parameters": sum(parameter.numel() for parameter in made.model.parameters()),
        "peak": made.peak,
        "inputs": {name: list(getattr(value, "shape", [])) for name, value in made.inputs.items()},
        "notes": made.notes,
        "seconds": round(time.perf_counter() - start, 2),
    }


def apart(model_type: str) -> dict[str, object]:
    """`attempt` in a forked process, so that a crash or a hang ends only that."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(LIMIT)
        with os.fdopen(writer, "w") as sink:
            json.dump(attempt(model_type), sink)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as source:
        said = source.read()
    _, status = os.waitpid(child, 0)
    if said and status == 0:
        return json.loads(said)
    number = os.waitstatus_to_exitcode(status)
    return {"status": "no", "reason": f"no answer in {LIMIT} s" if number == -14 else f"crashed ({number})"}


def main() -> None:
    import torch
    from transformers import AutoModel  # noqa: F401  (imported once, before the forks)
    from transformers.utils import logging

    from . import model_types

    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--out", help="write the list as tab-separated values too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    chosen = [
        name for name in model_types() if any(fnmatch.fnmatch(name, p) for p in options.only.split(","))
    ]
    lines = []
    for name in chosen:
        found = apart(name)
        if found["status"] == "yes":
            peak = "-" if found["peak"] is None else f"{found['peak']:.2f}"
            figures = [found["class"], peak, found["parameters"], found["seconds"]]
            rest = "\t".join(str(figure) for figure in [*figures, f"{found['inputs']} {found['notes']}"])
        else:
            rest = str(found["reason"])
        lines.append(f"{name}\t{found['status']}\t{rest}")
        print(lines[-1], flush=True)
    print(sum("\tyes\t" in line for line in lines), "of", len(lines))
    if options.out:
        with open(options.out, "w") as sink:
            sink.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
