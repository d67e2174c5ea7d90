"""Where this folder is on the path, torch loads the emulated accelerator as any backend that is installed.

It does so where `ATTNSCOPE_EMULATED` says `cuda` or `mps`.
"""

import importlib.util
import os
import sys
from pathlib import Path


def start() -> None:
    if kind := os.environ.get("ATTNSCOPE_EMULATED"):
        backend = Path(__file__).resolve().parent.parent / "backend.py"
        spec = importlib.util.spec_from_file_location("attnscope_emulated_backend", backend)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look themselves up
        spec.loader.exec_module(module)
        module.load(kind)
