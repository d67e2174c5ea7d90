"""Code that must never run: pickles and Python files that leave a canary where they are read.

The canary is a file in the folder `canaries` beside the current folder, named after what ran.
"""

import io
import pickle
from pathlib import Path
from random import Random

from .. import draw


class _Planted:
    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return open, (str(self.canary), "w")


def canary(here: Path, name: str) -> Path:
    return here.parent / "canaries" / name


def pickled(here: Path, zipped: bool = False) -> bytes:
    """A pickle that makes the canary `pickle`, plain or as torch writes one."""
    plain = pickle.dumps({"weight": _Planted(canary(here, "pickle"))}, protocol=2)
    if not zipped:
        return plain
    members = {"data.pkl": plain, "version": b"3\n", "byteorder": b"little"}
    return draw.zipped({f"archive/{name}": content for name, content in members.items()})


def python(here: Path) -> bytes:
    """A module that makes the canary `code` as it is imported, and has classes of every name asked for."""
    return (
        f"open({str(canary(here, 'code'))!r}, 'w').close()\n"
        "def __getattr__(name):\n    from transformers import BertModel\n    return BertModel\n"
        "class Planted: pass\n"
    ).encode()


def object_array(here: Path) -> bytes:
    """A .npy file of objects, which can be read only by running its pickle."""
    import numpy as np

    made = io.BytesIO()
    np.save(made, np.array([_Planted(canary(here, "pickle"))], dtype=object), allow_pickle=True)
    return made.getvalue()


PICKLES = (
    "pytorch_model.bin", "model.bin", "model.pkl", "training_args.bin", "optimizer.pt", "adapter_model.bin",
    "tf_model.h5", "flax_model.msgpack", "pytorch_model-00001-of-00001.bin", "model.pt", "rust_model.ot",
    "scheduler.pt",
)  # fmt: skip


def name_of_pickle(rng: Random) -> str:
    return rng.choice(PICKLES)
