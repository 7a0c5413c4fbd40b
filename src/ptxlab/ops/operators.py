"""Functions as operators of torch, `torch.ops.ptxlab.NAME`, so that `torch.compile` and autograd know them.

torch is not imported for that. Operators are registered when their functions are made if torch was imported before,
else at the first call with a tensor, or when `torch.compile` meets a call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from ptxlab.gpu.arrays import is_torch
from ptxlab.ops.batches import torch_rule

_known: dict[str, Operator] = {}  # by name


@cache
def _tracing_of(torch: ModuleType) -> Callable[[], bool]:
    """Whether torch compiles, traces or transforms the code that calls this now."""
    is_compiling, count_modes = torch.compiler.is_compiling, torch._C._len_torch_dispatch_stack
    find_transform = torch._C._functorch.peek_interpreter_stack
    return lambda: is_compiling() or count_modes() > 0 or find_transform() is not None


def _look_for_torch() -> bool:
    """Whether torch, which was imported after this module, traces the code that calls this now.

    `torch.compile` does not trace this function: it calls it, and takes the answer for a constant.
    """
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "compiler"):
        return False
    return bool(_tracing_of(torch)() or torch._guards.TracingContext.try_get() is not None)


_look_for_torch._dynamo_marked_constant = True  # type: ignore[attr-defined]
_torch: Any = sys.modules.get("torch")
is_traced: Callable[[], bool] = _tracing_of(_torch) if hasattr(_torch, "compiler") else _look_for_torch
"""Whether torch compiles, traces or transforms this code now: then it is to see an operator."""


def is_transformed() -> bool:
    """Whether a transform of `torch.func` runs this code now."""
    return sys.modules["torch"]._C._functorch.peek_interpreter_stack() is not None


def once(compute: Callable[..., object], *given: object) -> Any:
    """Compute a gradient that has no gradient itself; `torch.func` would ask for that of each."""
    if not is_transformed():
        return compute(*given)
    torch = sys.modules["torch"]
    functorch = torch._C._functorch
    if [one.key() for one in functorch.get_interpreter_stack()].count(functorch.TransformType.Grad) > 1:
        raise ValueError("this function has a gradient, and the gradient has none: differentiate once")
    with torch.no_grad():
        return compute(*given)


def no_gradient(name: str) -> ValueError:
    """Says that an operator has no gradient."""
    return ValueError(f"`{name}` has no gradient: call it under `torch.no_grad()`, or detach its arguments")


def has_no_memory(tensor: object) -> bool:
    """Whether a tensor is an extent and a type only, or represents others in a transform."""
    torch = sys.modules["torch"]
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return True
    if tensor.__class__ is torch.Tensor or tensor.__class__ is torch.nn.Parameter:
        return False
    return isinstance(tensor, import_module("torch._subclasses.fake_tensor").FakeTensor)


def is_grad_enabled() -> bool:
    """Whether torch records what is computed."""
    return bool(sys.modules["torch"].is_grad_enabled())


def is_ordered() -> bool:
    """Whether torch is to compute the same bits in every run."""
    return bool(sys.modules["torch"]._C._get_deterministic_algorithms())


class Gradient(NamedTuple):
    """A gradient as `torch.library.register_autograd` takes it: `backward(ctx, *grads)`, and what it needs is kept."""

    backward: Callable[..., object]
    keep: Callable[[Any, Any, Any], None]


class Operator:
    """A function of tensors as an operator of torch; `describe` makes what comes out, without computing it."""

    def __init__(
        self,
        name: str,
        schema: str,
        function: Callable[..., object],
        describe: Callable[..., object],
        gradient: Gradient | None = None,
    ) -> None:
        self.name, self.schema, self.function, self.describe, self.gradient = name, schema, function, describe, gradient
        self.library: Any = None
        self.made: Any = None
        self.plain: Any = None
        self.is_recording: Callable[[], bool] = bool
        self.is_compiling: Callable[[], bool] = bool
        self._differentiable: Any = None
        self._record: Any = None
        self._defaults: tuple[object, ...] = ()
        _known[name] = self
        if hasattr(sys.modules.get("torch"), "compiler"):
            self.define()

    def __call__(self, *given: Any) -> Any:
        """Call it as torch does: this is what a traced call becomes.

        Gradients of `torch.library` are unknown to `torch.func`, those of a `torch.autograd.Function` are not.
        """
        register()
        if not self.is_compiling() and is_transformed():  # `torch.compile` cannot trace what looks into `sys.modules`
            if self.gradient is not None:
                return self._function().apply(*given)
            if is_grad_enabled() and any(one.requires_grad for one in filter(_is_tensor, given)):
                raise no_gradient(self.name)
        return (self.made if self.is_recorded(*given) else self.plain)(*given)

    def is_recorded(self, *given: object) -> bool:
        """Whether torch is to differentiate a call with these arguments."""
        register()
        return self.is_recording() and any(getattr(one, "requires_grad", False) for one in given)

    def define(self) -> None:
        """Register it, and if it has a gradient also without: torch asks in Python whether that is wanted."""
        torch = import_module("torch")
        self.library = torch.library.Library("ptxlab", "FRAGMENT")  # operators are gone with their library
        self.made = self.plain = self._define(torch, self.name)
        if self.gradient is not None:
            self.plain = self._define(torch, f"{self.name}_without_gradient")
            self._defaults = tuple(one.default_value for one in self.made.default._schema.arguments)
            self.library.impl(self.name, self._recorded, "Autograd")
        shorten(self.plain.default, self.function)
        self.is_recording, self.is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling

    def _define(self, torch: ModuleType, name: str) -> Any:
        """An operator; `torch.library.custom_op` would wrap the function, which costs more than a launch."""
        self.library.define(name + self.schema, tags=(torch.Tag.pt2_compliant_tag,))
        for device in ("CUDA", "CPU"):
            self.library.impl(name, self.function, device)
        torch.library.register_fake(f"ptxlab::{name}", self.describe, lib=self.library)
        torch.library.register_vmap(f"ptxlab::{name}", torch_rule(self.name, self), lib=self.library)
        return getattr(torch.ops.ptxlab, name)

    def _recorded(self, *given: object) -> Any:
        """It with its gradient, as torch's dispatcher calls it: what is traced is the operator that has none.

        `torch.library.register_autograd` would leave this operator in a compiled graph, where each call goes through
        Python twice more. The dispatcher leaves out arguments that have their defaults.
        """
        whole = *given, *self._defaults[len(given) :]
        return self._function().apply(*whole) if self.is_recorded(*whole) else self.plain(*whole)

    def differentiate(self, *given: Any) -> Any:
        """Compute it so that autograd knows its gradient, which takes half the time of a call of the operator."""
        if self.gradient is None or _any_without_memory(given):
            return self(*given)
        if self._record is None:
            torch = import_module("torch")
            # What `torch.autograd.Function.apply` does before that of its base is for transforms: as long as the rest.
            base = getattr(torch.autograd.function, "_SingleLevelFunction", torch.autograd.Function)
            parts = {"forward": self._keep, "backward": self.gradient.backward}
            made: Any = type(self.name, (base,), {at: staticmethod(one) for at, one in parts.items()})
            if hasattr(made, "_backward_cls"):  # whose `apply` finds out in Python what is called
                made._backward_cls.apply = self.gradient.backward
            self._record = made.apply
        return self._record(*given)

    def _keep(self, ctx: object, *given: object) -> Any:
        """Compute it, and keep what its gradient needs."""
        assert self.gradient is not None
        found = self.function(*given)
        self.gradient.keep(ctx, given, found)
        return found

    def _function(self) -> Any:
        """It as a `torch.autograd.Function`, which transforms can take apart."""
        if self._differentiable is None:
            assert self.gradient is not None
            parts = {
                "forward": self._compute,
                "setup_context": self.gradient.keep,
                "backward": self.gradient.backward,
                "vmap": torch_rule(self.name, self),
            }
            function = import_module("torch").autograd.Function
            self._differentiable = type(self.name, (function,), {at: staticmethod(one) for at, one in parts.items()})
        return self._differentiable

    def _compute(self, *given: object) -> Any:
        """Compute it, or let the next transform of `torch.func` see it, or what traces it."""
        if is_transformed():
            return self(*given)
        return self.plain(*given) if is_traced() or _any_without_memory(given) else self.function(*given)


def shorten(overload: Any, function: Callable[..., object]) -> None:
    """Let a call of an operator without a gradient, as compiled graphs make it, go to its function directly.

    torch's dispatcher takes three times as long as the function to find it. It is asked where something sees the call:
    a mode, a transform, or a tensor that is not a plain one.
    """
    dispatch, torch = overload._op, sys.modules["torch"]
    plain = frozenset([torch.Tensor, torch.nn.Parameter, type(None), bool, int, float, str])

    def call(*given: Any, **named: Any) -> Any:
        if not is_traced():
            for one in given:
                if one.__class__ not in plain:
                    break
            else:
                return function(*given, **named)
        return dispatch(*given, **named)

    overload._op = call


def _any_without_memory(given: Sequence[object]) -> bool:
    """Whether one of these is a tensor without memory."""
    for one in given:  # noqa: SIM110 - `any` of a generator takes longer, and every call asks
        if _is_tensor(one) and has_no_memory(one):
            return True
    return False


def _is_tensor(one: Any) -> bool:
    return is_torch(one.__class__)


def function_of(name: str) -> Callable[..., Any]:
    """What computes an operator."""
    return _known[name].function


def register() -> bool:
    """Make all operators known to torch, once."""
    for operator in _known.values():
        if operator.library is None:
            operator.define()
    return True


register._dynamo_marked_constant = True  # type: ignore[attr-defined]  # `torch.compile` calls it while it traces
