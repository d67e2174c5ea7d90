"""Typed axes are enforced while tests run; the hook must stand before the first import of attnscope."""

from jaxtyping import install_import_hook

TYPED = ("sdpa", "measures", "attention", "results", "verify", "capture", "analysis", "tokens", "model")
install_import_hook([f"attnscope.{name}" for name in TYPED], "beartype.beartype")

import torch  # noqa: E402

torch.set_num_threads(1)
