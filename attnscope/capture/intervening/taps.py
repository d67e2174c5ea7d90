"""Find where parts of a model other than heads hand on their results, by running it.

    residual    what a layer returns: the entry of a list of modules that holds one attention
    mlp         what the last matrix of a layer reads that is neither linear in the layer's input nor made by
                an attention: found by the rule that cuts a run into parts, so that it is the MLP of `why`
    position    the rows of a table that follow one another, one for each token: a learned vector each

No names of modules and no list of architectures. What cannot be told apart is refused.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.intervening.changes import Tap
from attnscope.capture.intervening.passing import holding
from attnscope.capture.parts.rule import Cut, Leaf, Rule
from attnscope.capture.parts.run import cut_run
from attnscope.capture.running import Refused, evaluating, hooked, without_cache
from attnscope.capture.trace.operations import tensors_in
from attnscope.errors import InputError, one_line
from attnscope.model.anatomy.sites import Site, every_site
from attnscope.results.claims.effect import Part

BEFORE_ALL = -1  # layer number of a tap before the first layer
Read = tuple[nn.Module, int, Tensor]  # a module, index of its forward, its input


def find_taps(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], part: Part
) -> dict[int, Tap]:
    """The taps of a part in the layers of `sites`, by layer; for positions, the one embedding table.

    Raises `InputError` that says why where there is none.
    """
    if part is Part.POSITION:
        return {BEFORE_ALL: Tap(part, BEFORE_ALL, _table(model, inputs, sites))}
    blocks = _blocks(model, sites)
    if part is Part.RESIDUAL:
        return {layer: Tap(part, layer, *each) for layer, each in blocks.items()}
    assert part is Part.MLP, "heads have their attentions"
    return _mlps(model, inputs, sites, blocks)


# a layer's module, index of its forward, whether its input is tapped, whether layers share it
Block = tuple[nn.Module, int, bool, bool]


def _blocks(model: nn.Module, sites: Sequence[Site]) -> dict[int, Block]:
    """The module of every layer: the outermost list entry that holds one attention of its tower."""
    blocks: dict[int, Block] = {}
    for site in sites:
        inside = [each for each in holding(model, site.path) if _held(each, sites) == 1]
        if not inside:
            raise InputError(f"layer {site.layers[0]} ({site.path}) is no entry of a list of layers")
        for turn, layer in enumerate(site.layers):
            blocks.setdefault(layer, (inside[0], turn, False, len(site.layers) > 1))
    return blocks


def _held(module: nn.Module, sites: Sequence[Site]) -> int:
    own = set(module.modules())
    return sum(site.module in own for site in sites)


def _mlps(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], blocks: Mapping[int, Block]
) -> dict[int, Tap]:
    every = every_site(sites)
    try:
        rule, made, read = _cut(model, inputs, every, {module for module, *_ in blocks.values()})
    except Refused as error:
        raise InputError(f"this model does not run cut into parts: {one_line(error)}") from error
    paths = {module: path for path, module in model.named_modules()}
    attentions = tuple(site.path for site in every)
    site_of = {layer: site for site in sites for layer in site.layers}
    taps: dict[int, Tap] = {}
    for layer, (block, turn, _, shared) in blocks.items():
        mine = [
            leaf
            for leaf in rule.leaves.values()
            if leaf.cut is Cut.NONLINEAR
            and _under(leaf.key[0], (paths[block],))
            and not _under(leaf.key[0], attentions)
            and (not shared or leaf.site == (site_of[layer].path, turn))
        ]
        live = _reaching(made[block, turn], mine)
        found = [each for leaf in live for each in read if _same(each[2], leaf.tensor)]
        if not live:
            raise InputError(f"layer {layer} has no MLP: nothing but attention adds to what it hands on")
        if len(live) > 1 or not found:
            several = (
                f"{len(live)} parts that are not linear" if len(live) > 1 else "one that no matrix reads"
            )
            raise InputError(f"the MLP of layer {layer} cannot be told apart: it has {several}")
        taps[layer] = Tap(Part.MLP, layer, found[0][0], found[0][1], True, shared)
    return taps


def _under(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(f"{root}.") for root in roots)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.detach())


def _reaching(made: Tensor, leaves: Sequence[Leaf]) -> list[Leaf]:
    """The parts (leaves) that the layer's result `made` depends on, by gradient."""
    if not leaves or not made.requires_grad:
        return []
    random = torch.Generator().manual_seed(1)
    probe = torch.randn(made.shape, generator=random).to(made)
    tensors = [leaf.tensor for leaf in leaves]
    slopes = torch.autograd.grad((made * probe).sum(), tensors, retain_graph=True, allow_unused=True)
    return [leaf for leaf, slope in zip(leaves, slopes, strict=True) if slope is not None and slope.any()]


def _cut(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], blocks: set[nn.Module]
) -> tuple[Rule, dict[tuple[nn.Module, int], Tensor], list[Read]]:
    """The rule of a run cut into parts, its layers' results, and inputs of the modules with a matrix."""
    made: dict[tuple[nn.Module, int], Tensor] = {}
    read: list[Read] = []
    turns: Counter[nn.Module] = Counter()

    def end(module: nn.Module, _given: Any, output: Any) -> None:
        number = sum(each is module for each, _ in made)
        made[module, number] = first_tensor(output)

    def enter(module: nn.Module, given: Any) -> None:
        turn, turns[module] = turns[module], turns[module] + 1
        if given and isinstance(given[0], Tensor):
            with torch._C.DisableTorchFunction():
                read.append((module, turn, given[0].detach().clone()))

    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block.register_forward_hook(end))
            for each in block.modules():
                if any(own.ndim > 1 for own in each.parameters(recurse=False)):
                    stack.enter_context(each.register_forward_pre_hook(enter))
        rule = cut_run(model, inputs, [site.path for site in sites], None)
    return rule, made, read


def _table(model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site]) -> nn.Module:
    found: list[nn.Module] = []
    words = getattr(model, "get_input_embeddings", lambda: None)()
    within = {each for site in every_site(sites) for each in site.module.modules()}
    side = _side(model, sites)

    def look(module: nn.Module, _given: Any, made: Any) -> None:
        table = module.weight
        if (
            isinstance(made, Tensor)
            and made.ndim > 1
            and isinstance(table, Tensor)
            and _consecutive(table, made)
        ):
            found.append(module)

    with ExitStack() as stack:
        for path, each in model.named_modules():
            table = isinstance(each, nn.Embedding) and each is not words and each not in within
            if table and path.startswith(side):
                stack.enter_context(each.register_forward_hook(look))
        with evaluating(model):
            model(**without_cache(model, inputs))
    if len(set(found)) == 1:
        return found[0]
    if found:
        raise InputError("more than one table is looked up by position: which is meant cannot be told")
    raise InputError(f"no vector of a position was learned: {_instead(model)}")


def _side(model: nn.Module, sites: Sequence[Site]) -> str:
    """Path prefix of the half, encoder or decoder, that holds the attentions; "" for a model of one half."""
    half = next((each for each in ("encoder", "decoder") if f".{each}." in f".{sites[0].path}"), "")
    both = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    if not both or not half:
        return ""
    return sites[0].path[: sites[0].path.index(half) + len(half)]


def _consecutive(table: Tensor, made: Tensor) -> bool:
    rows = made.detach().flatten(0, -2)
    count = made.shape[-2]
    starts = (table == rows[0]).all(-1).nonzero()[:, 0].tolist()
    return count > 1 and any(
        start + count <= len(table) and torch.equal(table[start : start + count], rows[:count])
        for start in starts
    )


def _instead(model: nn.Module) -> str:
    names = {type(each).__name__.casefold() for each in model.modules()}
    if any("rotary" in name for name in names):
        return "queries and keys are turned by their positions (rotary)"
    return "positions are told in another way, such as by distances"


def first_tensor(made: Any) -> Tensor:
    """The first tensor in a module's output."""
    return next(tensors_in(made if isinstance(made, Tensor | tuple | list) else list(made.values())))


Handle = Callable[[Tap, Tensor], Tensor | None]


@contextmanager
def tapping(taps: Sequence[Tap], handle: Handle, after: Callable[[Tap, Any], None]) -> Iterator[None]:
    """While open, `handle` gets the tensor at each tap, and its result replaces it; None leaves it.

    `after` gets the output of a module whose input was tapped.
    """
    turns: Counter[nn.Module] = Counter()
    at = {(tap.module, tap.turn): tap for tap in taps}

    def enter(module: nn.Module, given: Any) -> Any:
        turns[module] += 1
        tap = at.get((module, turns[module] - 1))
        if tap is None or not tap.given:
            return None
        new = handle(tap, given[0])
        return None if new is None else (new, *given[1:])

    def leave(module: nn.Module, given: Any, made: Any) -> Any:
        tap = at.get((module, turns[module] - 1))
        if tap is None:
            return None
        if tap.given:
            return after(tap, made)
        new = handle(tap, first_tensor(made))
        return None if new is None else _with_first(made, new)

    modules = dict.fromkeys(tap.module for tap in taps)
    entering = (module.register_forward_pre_hook(enter) for module in modules)
    leaving = (module.register_forward_hook(leave) for module in modules)
    with hooked(entering), hooked(leaving):
        yield


def _with_first(made: Any, new: Tensor) -> Any:
    if isinstance(made, Tensor):
        return new
    if isinstance(made, tuple | list):
        number = next(i for i, each in enumerate(made) if isinstance(each, Tensor))
        return type(made)([*made[:number], new, *made[number + 1 :]])
    name = next(name for name, each in made.items() if isinstance(each, Tensor))
    made[name] = new
    return made


def handed(model: nn.Module, inputs: Mapping[str, Any], taps: Sequence[Tap]) -> tuple[dict[Tap, Tensor], Any]:
    """Tensors at the taps for `inputs`, and the model's output."""
    found: dict[Tap, Tensor] = {}

    def keep(tap: Tap, tensor: Tensor) -> None:
        found[tap] = tensor.detach().clone()

    with evaluating(model), tapping(taps, keep, lambda tap, made: None):
        output = model(**without_cache(model, inputs))
    return found, output
