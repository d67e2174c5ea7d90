"""Keys as they were before their rotary position, seen at the projection that made them.

They are used for one thing only: the certificate leaves the rotation out on purpose and must notice.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def unrotated_keys(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """While open, holds per attention module what its `k_norm`, or else its `k_proj`, last returned."""
    latest: dict[nn.Module, Tensor] = {}
    handles = []
    try:
        for module in modules:
            maker = getattr(module, "k_norm", None) or getattr(module, "k_proj", None)
            if isinstance(maker, nn.Module):
                handles.append(maker.register_forward_hook(_remember(latest, module)))
        yield latest
    finally:
        for handle in handles:
            handle.remove()


def _remember(latest: dict[nn.Module, Tensor], module: nn.Module):  # type: ignore[no-untyped-def]
    def hook(_maker: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            latest[module] = output

    return hook
