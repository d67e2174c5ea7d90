"""Trace the attention of models that do not use transformers' interface, from torch's operations.

    product -> element-wise steps -> softmax -> product

Every torch function that the model calls passes through here on its way and is made exactly as it would
have been. Of the tensors that come out it is remembered what they are made of (`scores`); where a
softmax meets such scores, they are taken apart and rebuilt (`layout`); where the softmax's result
meets the values, the whole attention is handed to the watcher (`fused`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnscope.capture.trace.fused import (
    TracedAttention,
    Weights,
    attention_of,
    fused_attention,
    native_answers,
    stepwise,
    unscripted,
    weights_of,
)
from attnscope.capture.trace.layout import rebuilt
from attnscope.capture.trace.memory import (
    Answer,
    Doubt,
    Memory,
    Record,
    Role,
    after,
    answer_of,
    blend_of,
    contracts,
    is_blended,
    is_matrix,
    mixed_again,
    mixed_weights,
    of_einsum,
    role_moved,
    term_of,
    weights_after,
)
from attnscope.capture.trace.operations import (
    FRESH,
    LOOKUPS,
    MOVES,
    PRODUCTS,
    SILENT,
    Multiplication,
    multiplication,
    operation,
    overwrites,
    softmax_axis,
    tensors_in,
)
from attnscope.capture.trace.scores import (
    Origin,
    Part,
    Scores,
    added,
    origin_of,
    product_scores,
    scaled,
    version,
)
from attnscope.capture.trace.steps import followed, joined, written
from attnscope.model.anatomy.towers import head_count

__all__ = ["TracedAttention", "traced"]

Watcher = Callable[[TracedAttention], None]
# gets an attention, the result that holds its output, and a function that arranges such a tensor alike
Changer = Callable[[TracedAttention, Tensor, Callable[[Tensor], Tensor]], None]
Unread = Callable[[nn.Module, int], None]
Taken = Callable[[TracedAttention], None]


@contextmanager
def traced(
    modules: Iterable[nn.Module],
    watch: Watcher,
    unread: Unread = lambda module, count: None,
    taken_back: Taken = lambda attention: None,
    change: Changer | None = None,
) -> Iterator[None]:
    """While open, `watch` gets every softmax attention that is computed inside of one of `modules`.

    It is handed over as soon as the weights have met the values, under the innermost of `modules`. What
    the model computes stays the same to the bit; what `watch` raises passes through. Nothing stays behind.

    When a module returns, `unread` gets the number of its softmaxes over scores whose weights were never
    seen to meet values, and `taken_back` each attention handed over that is none: what the weights
    had met was no values, for these came later, and there is another one with them. `change` may write over
    the result, after `watch`; torch's native path, which would not know of that, is then not asked.
    """
    watched = tuple(dict.fromkeys(modules))
    tracer = _Tracer(watch, unread, taken_back, change)
    with ExitStack() as stack:
        stack.enter_context(unscripted(watched))
        if change is None:
            stack.enter_context(native_answers(watched))
        for module in watched:
            for buffer in module.buffers():
                tracer.memory.keep(buffer, Origin(shapes=(buffer.shape,)))
            stack.enter_context(module.register_forward_pre_hook(tracer.enter))
            stack.enter_context(module.register_forward_hook(tracer.leave, always_call=True))
        stack.enter_context(tracer)
        yield


class _Tracer(TorchFunctionMode):
    """Torch function mode that follows scores; `inside` are the running watched modules, innermost last."""

    def __init__(self, watch: Watcher, unread: Unread, taken_back: Taken, change: Changer | None) -> None:
        super().__init__()
        self.watch, self.unread, self.taken_back, self.change = watch, unread, taken_back, change
        self.inside: list[nn.Module] = []
        self.waiting: list[list[object]] = []  # by running module: softmaxes that met no values
        self.doubts: list[list[Doubt]] = []  # by running module
        self.memory = Memory()

    def enter(self, module: nn.Module, inputs: Any) -> None:
        self.inside.append(module)
        self.waiting.append([])
        self.doubts.append([])
        self.memory.open()

    def leave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self.inside.pop()
        self.memory.close()
        left = self.waiting.pop()
        for doubt in self.doubts.pop():
            self.taken_back(doubt.attention)
            left += [] if doubt.instead else [doubt.logits]
        if left:
            self.unread(module, len(left))

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs, name = kwargs or {}, operation(function)
        if name in SILENT:
            return function(*args, **kwargs)
        if name == "multi_head_attention_forward":
            with self:
                return stepwise(*args, **kwargs)
        before = {id(each): self.memory.of(each) for each in tensors_in((args, kwargs))}
        if args and overwrites(function):
            self._keep_weights(args[0], before)
        result = function(*args, **kwargs)
        if isinstance(result, Tensor):
            kept = before.get(id(result))  # a call that changed nothing may return what it was given
            if kept is None or version(result) != kept.version:
                role = self._role(function, name, args, kwargs, result, before) if self.inside else None
                self._remember(name, args, result, before, role)
        elif isinstance(result, tuple | list) and name in MOVES:
            for number, piece in enumerate(result):
                self._remember(name, args, piece, before, self._piece(function, args, kwargs, number, before))
        elif name == "setitem" and isinstance(scores := before[id(args[0])].role, Scores):
            self._remember(name, args, args[0], before, written(scores, *args[1:]))
        return result

    def _remember(self, name: str, args: Any, result: Tensor, before: dict[int, Record], role: Role) -> None:
        origin = origin_of(name, args, result, [record.origin for record in before.values()])
        if role is None and self.inside and name in LOOKUPS and origin.products:
            role = Scores(result.shape, (Part(result, version(result), origin),))
        self.memory.keep(result, origin, role)

    def _keep_weights(self, target: Any, before: dict[int, Record]) -> None:
        record = before.get(id(target))
        if record and isinstance(record.role, Weights):
            kept = replace(record.role, weights=record.role.weights.clone())
            before[id(target)] = replace(record, role=kept)

    def _piece(self, function: Any, args: Any, kwargs: Any, number: int, before: dict[int, Record]) -> Role:
        record = before.get(id(args[0])) if args else None
        role = record.role if record else None
        return role_moved(role, lambda each: function(each, *args[1:], **kwargs)[number])

    def _role(
        self, function: Any, name: str, args: Any, kwargs: Any, result: Tensor, before: dict[int, Record]
    ) -> Role:
        """Role in an attention of the result of a torch function; None where it has none."""
        if name.startswith(FRESH):
            return None
        if name in PRODUCTS:
            return self._product(name, args, kwargs, result, before)
        if name == "scaled_dot_product_attention":
            module = self.inside[-1]

            def fused(output: Tensor) -> TracedAttention | None:
                return fused_attention(
                    module, function, args, kwargs, output, lambda x: self.memory.of(x).origin
                )

            self._tell(fused(result), result, fused)
            return None
        first = before[id(args[0])].role if args and isinstance(args[0], Tensor) else None
        if name == "softmax":
            if first is None and before[id(args[0])].origin.products:
                self.waiting[-1].append(result)  # over products that could not be followed
            return self._softmax(first, args, kwargs, result)
        if name in ("cat", "concat"):
            blocks = [before[id(each)].role for each in tensors_in((args, kwargs))]
            axis = kwargs.get("dim", args[1] if len(args) > 1 else 0) % result.ndim
            scores = [each for each in blocks if isinstance(each, Scores)]
            return joined(scores, axis, result) if scores and len(scores) == len(blocks) else None
        if name in MOVES:
            return role_moved(first, lambda each: function(each, *args[1:], **kwargs))
        for record in before.values():
            if isinstance(record.role, Weights):
                return weights_after(record.role, name, result)
            if isinstance(record.role, Answer):
                return after(record.role, name, result)
        if any(isinstance(record.role, Scores) for record in before.values()):
            return followed(name, args, kwargs, result, term_of(before))
        return None

    def _softmax(self, scores: Any, args: Any, kwargs: Any, result: Tensor) -> Weights | None:
        axis = softmax_axis(args, kwargs)
        if not isinstance(scores, Scores) or axis is None:
            return None
        logits = rebuilt(scores, args[0], axis, head_count(self.inside[-1]))
        self._settle(scores)
        self.waiting[-1].append(logits)
        return weights_of(logits, result) if logits else None

    def _product(self, name: str, args: Any, kwargs: Any, result: Tensor, before: dict[int, Record]) -> Role:
        made = multiplication(name, args, kwargs)
        if made is None:
            return of_einsum(args, result, before) if name == "einsum" else None
        sides = [before[id(operand)] for operand in made.operands]
        for side, record in enumerate(sides):
            if isinstance(record.role, Weights):
                return self._met(record.role, made, side, result, sides[1 - side].role)
        for side, record in enumerate(sides):
            if isinstance(answer := record.role, Answer):
                if not sides[1 - side].origin.given:
                    mixed = answer.mixed and mixed_weights(answer.mixed, made, side, result)
                    return mixed_again(answer, mixed)
                if contracts(answer.columns, made, side):
                    self._doubt(answer, record.origin.root, made, side, result)
        origins = sides[0].origin, sides[1].origin
        if any(is_matrix(*pair) for pair in zip(made.operands, origins, strict=True)):
            return blend_of(made, result, origins)
        scores = product_scores(made, result, origin_of(name, args, result, origins), origins)
        if made.added is None:
            return scores
        tensor, factor = made.added
        record = before[id(tensor)]
        part = Part(tensor, record.version, record.origin)
        term = scaled(Scores(tensor.shape, (part,)), factor)
        return term and added(scores, term, result.shape)

    def _met(self, weights: Weights, made: Multiplication, side: int, result: Tensor, values: Role) -> Role:
        """Role of a product with weights: an attention's output, or weights mixed by a matrix."""
        module = self.inside[-1]
        attention = attention_of(module, weights, made, side, result)
        if attention is None:
            return mixed_weights(weights, made, side, result)
        if is_blended(values, made, 1 - side):
            attention = replace(attention, blended=True)
        for waiting in self.waiting:
            waiting[:] = [each for each in waiting if each is not weights.logits]
        self._tell(attention, result, lambda other: attention_of(module, weights, made, side, other))
        return answer_of(attention, weights, made, side, result)

    def _doubt(self, answer: Answer, root: object, made: Multiplication, side: int, result: Tensor) -> None:
        module, mixed, instead = self.inside[-1], answer.mixed, None
        if mixed is not None:
            instead = attention_of(module, mixed, made, side, result)
            self._tell(instead, result, lambda other: attention_of(module, mixed, made, side, other))
        self.doubts[-1].append(Doubt(root, answer.attention, instead, answer.logits))

    def _settle(self, scores: Scores) -> None:
        products = [part.product for part in scores.parts if part.product]
        compared = {origin.root for product in products for origin in product.origins}
        for doubt in [each for each in self.doubts[-1] if each.root in compared]:
            self.doubts[-1].remove(doubt)
            if doubt.instead:
                self.taken_back(doubt.instead)

    def _tell(
        self,
        attention: TracedAttention | None,
        result: Tensor,
        of: Callable[[Tensor], TracedAttention | None],
    ) -> None:
        """Pass an attention to the watcher; `of` makes it with another tensor in place of its `result`."""
        if attention is None:
            return
        self.watch(attention)
        if self.change is None:
            return

        def arranged(tensor: Tensor) -> Tensor:
            one = of(tensor)
            assert one is not None, "it was one with the result"
            return one.output

        self.change(attention, result, arranged)
