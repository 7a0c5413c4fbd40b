"""Registers: a name, a type, and the function and scope that they belong to; what computes with them is above this.

`class_of` finds the class of a type: one for each type of PTX, all made in `values.py`.
"""

from __future__ import annotations

import builtins
from typing import Any, ClassVar, NoReturn, TypeVar

from ptxlab.author.lines import refuse
from ptxlab.author.operand import Kind, Operand
from ptxlab.author.trace import ConditionalRegion, Trace, declared_as
from ptxlab.isa import Type
from ptxlab.isa.operand import Expected

R = TypeVar("R", bound="Register")
_CLASSES: dict[str, type[Any]] = {}

# The method of a register that computes what an operator of NumPy's numbers means, by the name of its ufunc.
# What computes a function of NumPy, of an `f32`.
_SOME_INSTRUCTIONS = "`ptx.sqrt.rn.f32(x)`, `ptx.max.f32(x, y)`"
_OF_NUMPY = {
    "exp": "`ptx.ex2.approx.f32(x * 1.442695)`",
    "exp2": "`ptx.ex2.approx.f32(x)`",
    "log": "`ptx.lg2.approx.f32(x) * 0.6931472`",
    "log2": "`ptx.lg2.approx.f32(x)`",
    "sin": "`ptx.sin.approx.f32(x)`",
    "cos": "`ptx.cos.approx.f32(x)`",
    "tanh": "`ptx.tanh.approx.f32(x)`",
    "reciprocal": "`ptx.rcp.rn.f32(x)`",
    "absolute": "`ptx.abs.f32(x)`",
    "maximum": "`ptx.max.f32(x, y)`",
    "minimum": "`ptx.min.f32(x, y)`",
}
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "bitwise_and": "__rand__",
    "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__",
    "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__",
    "not_equal": "__ne__", "divmod": "__rdivmod__",
}  # fmt: skip


class Register(Operand):
    """A register with its type. Subclasses that have a `type` are found by it: see `class_of`."""

    type: ClassVar[Type]
    name: str
    trace: Trace
    scope: ConditionalRegion
    lent: bool = False  # whether several pointers count from this register

    def __init_subclass__(cls) -> None:
        if "type" in vars(cls):
            _CLASSES.setdefault(cls.type.name, cls)

    def __init__(self, value: object = None) -> None:
        raise NotImplementedError

    @property
    def operand_kind(self) -> Kind:
        """The name of its type."""
        return self.type.name

    def print_operand(self, trace: Trace, expected: Expected) -> str:
        """Its name, in brackets where an address is expected."""
        name = self.read(trace) if expected.role == "read" else self.check_use(trace)
        return f"[{name}]" if expected.kind == "address" else name

    def described(self) -> str:
        """Its type."""
        return f"a `{self.type.name}`"

    def _make(self, trace: Trace) -> None:
        self.trace = trace
        self.scope = trace.scope
        self.name = trace.register(declared_as(self.type))

    @classmethod
    def fresh(cls: builtins.type[R], trace: Trace) -> R:
        """A register that nothing has been written to yet."""
        value = cls.__new__(cls)
        value._make(trace)
        return value

    @classmethod
    def several(cls: builtins.type[R], count: int) -> list[R]:
        """That many registers that nothing has been written to yet."""
        return [cls() for _ in range(count)]

    @classmethod
    def named(cls: builtins.type[R], name: str, trace: Trace) -> R:
        """The register of that name."""
        value = cls.__new__(cls)
        value.trace, value.scope, value.name = trace, trace.scope, name
        return value

    def read(self, trace: Trace) -> str:
        """The register's name, where an instruction of `trace` may read it."""
        return self.check_use(trace)

    def check_use(self, trace: Trace) -> str:
        """The register's name; refuses one of another kernel, and one that is only written on another path."""
        if self.trace is not trace:
            refuse(
                "foreign-register",
                f"`{self.name}` is a register of `{self.trace.name}`, and this is `{trace.name}`",
                helps=["pass values to a device function as arguments"],
            )
        if not self.scope.opened:
            refuse(
                "unwritten-register",
                f"`{self.name}` is written only {self.scope.reason}, and read after that",
                helps=[
                    f"make it before, `x = {self.type.name}(0)`, and write into it there: `x.set(...)` or `x += ...`"
                ],
            )
        return self.name

    def view(self, type: builtins.type[R]) -> R:
        """The same register, read as another type of its width; no instruction is written."""
        if declared_as(type.type) != declared_as(self.type) and type.type.kind != "b":
            refuse(
                "type-clash",
                f"a `{self.type.name}` register cannot be read as `{type.type.name}`",
                helps=[
                    f"`ptx.mov.b{self.type.width}(x, out={type.type.name}())` copies bits, `ptx.cvt` converts values",
                    f"an instruction writes any type of its width: `out={type.type.name}()`",
                ],
            )
        value = type.named(self.name, self.trace)
        value.scope = self.scope
        return value

    def __repr__(self) -> str:
        return f"<{self.type.name} {self.name}>"

    # What Python would do while the kernel is written, though the value is known only on the GPU.

    def __bool__(self) -> bool:
        refuse(
            "value-needed",
            f"Python needs `{self.name}` now, and its value exists only on the GPU",
            helps=[
                "`with ptx.when(p):` branches on the GPU, `ptx.loop` repeats; `ptx.selp`, `ptx.min` and `ptx.max` "
                "select a value",
                "combine predicates by `&`, `|` and `~`, each in parentheses: `(a < b) & (b < c)`",
            ],
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **_: object) -> Any:
        """What NumPy calls for `numpy.float32(2) * x`, and for functions such as `numpy.exp(x)`, which can't be."""
        operator = getattr(self, _REFLECTED.get(ufunc.__name__, ""), None)
        if operator is None or method != "__call__" or inputs[0] is self:
            refuse(
                "value-needed",
                f"`numpy.{ufunc.__name__}` computes in Python, and the value of `{self.name}` exists only on the GPU",
                helps=[f"instructions compute on the GPU: {_OF_NUMPY.get(ufunc.__name__, _SOME_INSTRUCTIONS)}"],
            )
        return operator(inputs[0])

    def _known_only_on_the_gpu(self, *_: object) -> NoReturn:
        refuse(
            "value-needed",
            f"Python needs the number in `{self.name}` ({self.type.name}), which is known only on the GPU",
            helps=[
                "instructions compute on the GPU: `ptx.sqrt.rn.f32(x)`"
                if self.type.kind == "f"
                else "`for i in ptx.range(n):` is a loop on the GPU, `ptx.cvt` converts numbers there"
            ],
        )

    __index__ = __int__ = __float__ = __iter__ = __len__ = _known_only_on_the_gpu


def class_of(type: Type) -> builtins.type[Any]:
    """The class of the registers of a type."""
    return _CLASSES[type.name]
