"""Registers as Python values: one class a type of PTX, and pointers with the type and state space they point to.

`f32(0.0)` is a fresh register that holds zero, `f32()` one that holds nothing yet. An operator writes the one
instruction that the types of its operands name (see `operators.py`); `x += y` and `x.set(y)` write into the register of
`x` itself, all others make a fresh one.
"""

from __future__ import annotations

import builtins
from typing import Any, ClassVar, NoReturn, TypeVar

from ptxlab.author import operators
from ptxlab.author.lines import refuse
from ptxlab.author.trace import Scope, Trace, current, declared_as
from ptxlab.isa import Type, type_named

V = TypeVar("V", bound="Value")


class Value:
    """A register with its type."""

    type: ClassVar[Type]
    name: str
    trace: Trace
    scope: Scope
    __array_ufunc__ = None  # NumPy's numbers leave operators to this class
    lent: bool = False  # whether several pointers count from this register

    def __init__(self, value: Any = None) -> None:
        self._make(current(f"`{self.type.name}(...)`"))
        if value is not None:
            operators.assign(self, value)

    def _make(self, trace: Trace) -> None:
        self.trace = trace
        self.scope = trace.scope
        self.name = trace.register(declared_as(self.type))

    @classmethod
    def fresh(cls: builtins.type[V], trace: Trace) -> V:
        """A register that nothing has been written to yet."""
        value = cls.__new__(cls)
        value._make(trace)
        return value

    @classmethod
    def several(cls: builtins.type[V], count: int) -> list[V]:
        """That many registers that nothing has been written to yet."""
        return [cls() for _ in range(count)]

    @classmethod
    def named(cls: builtins.type[V], name: str, trace: Trace) -> V:
        """The register of that name."""
        value = cls.__new__(cls)
        value.trace, value.scope, value.name = trace, trace.scope, name
        return value

    def read(self, trace: Trace) -> str:
        """The register's name, where an instruction of `trace` may read it."""
        return self.check_use(trace)

    def check_use(self, trace: Trace) -> str:
        """The register's name; refuses one of another kernel, and one that was only written where nobody may get to."""
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

    def set(self, value: Any) -> None:
        """Write `value` into this register, by a `mov`."""
        operators.assign(self, value)

    def view(self, type: builtins.type[V]) -> V:
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

    def _known_only_on_the_gpu(self, *_: Any) -> NoReturn:
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

    def __pow__(self, other: Any) -> NoReturn:
        operators.refuse_operator("**", self, "multiply, or `ptx.ex2.approx.f32` of a product with `ptx.lg2`")

    def __divmod__(self, other: Any) -> NoReturn:
        operators.refuse_operator("divmod", self, "two are: `a // b` and `a % b`")

    def _round(self, *_: Any) -> NoReturn:
        name = self.type.name
        operators.refuse_operator(
            "round",
            self,
            f"`ptx.cvt.rni.{name}.{name}(x)` rounds to nearest, `rmi` down, `rpi` up, `rzi` toward zero; "
            f"`ptx.cvt.rni.s32.{name}(x)` makes an integer",
        )

    __round__ = __floor__ = __ceil__ = __trunc__ = _round

    # Operators: see operators.py.

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return operators.binary("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return operators.binary("+", other, self)

    def __iadd__(self: V, other: Any) -> V:
        return operators.in_place("+", self, other)

    def __sub__(self, other: Any) -> Any:
        return operators.binary("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return operators.binary("-", other, self)

    def __isub__(self: V, other: Any) -> V:
        return operators.in_place("-", self, other)

    def __mul__(self, other: Any) -> Any:
        return operators.binary("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return operators.binary("*", other, self)

    def __imul__(self: V, other: Any) -> V:
        return operators.in_place("*", self, other)

    def __truediv__(self, other: Any) -> Any:
        return operators.binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operators.binary("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return operators.binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return operators.binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return operators.binary("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return operators.binary("%", other, self)

    def __and__(self, other: Any) -> Any:
        return operators.binary("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return operators.binary("&", other, self)

    def __iand__(self: V, other: Any) -> V:
        return operators.in_place("&", self, other)

    def __or__(self, other: Any) -> Any:
        return operators.binary("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return operators.binary("|", other, self)

    def __ior__(self: V, other: Any) -> V:
        return operators.in_place("|", self, other)

    def __xor__(self, other: Any) -> Any:
        return operators.binary("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return operators.binary("^", other, self)

    def __ixor__(self: V, other: Any) -> V:
        return operators.in_place("^", self, other)

    def __lshift__(self, other: Any) -> Any:
        return operators.shift("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return operators.shift("<<", other, self)

    def __rrshift__(self, other: Any) -> Any:
        return operators.shift(">>", other, self)

    def __ilshift__(self: V, other: Any) -> V:
        operators.shift("<<", self, other, out=self)
        return self

    def __rshift__(self, other: Any) -> Any:
        return operators.shift(">>", self, other)

    def __irshift__(self: V, other: Any) -> V:
        operators.shift(">>", self, other, out=self)
        return self

    def __neg__(self) -> Any:
        return operators.unary("-", self)

    def __invert__(self) -> Any:
        return operators.unary("~", self)

    def __abs__(self) -> Any:
        return operators.unary("abs", self)

    def __lt__(self, other: Any) -> Any:
        return operators.compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return operators.compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return operators.compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return operators.compare("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return operators.compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return operators.compare("ne", self, other)


class Negation:
    """`~p`: the opposite of a predicate. Where PTX writes `!p` or `@!p` it costs nothing, elsewhere a `not.pred`."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __invert__(self) -> Value:
        return self.value

    def _made(self) -> Any:
        from ptxlab.author.emit import emit

        return emit("not.pred", [self.value])

    def __and__(self, other: Any) -> Any:
        return operators.binary("&", self._made(), other)

    def __or__(self, other: Any) -> Any:
        return operators.binary("|", self._made(), other)

    def __xor__(self, other: Any) -> Any:
        return operators.binary("^", self._made(), other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __bool__(self) -> bool:
        return bool(self.value)


class pred(Value):  # noqa: N801 - these classes have the manual's names
    """A predicate."""

    type = type_named("pred")


class b8(Value):  # noqa: N801
    """8 bits."""

    type = type_named("b8")


class b16(Value):  # noqa: N801
    """16 bits."""

    type = type_named("b16")


class b32(Value):  # noqa: N801
    """32 bits."""

    type = type_named("b32")


class b64(Value):  # noqa: N801
    """64 bits."""

    type = type_named("b64")


class b128(Value):  # noqa: N801
    """128 bits."""

    type = type_named("b128")


class u8(Value):  # noqa: N801
    """An unsigned integer of 8 bits: only memory holds it, a load of one makes a `u16`."""

    type = type_named("u8")


class u16(Value):  # noqa: N801
    """An unsigned integer of 16 bits."""

    type = type_named("u16")


class u32(Value):  # noqa: N801
    """An unsigned integer of 32 bits."""

    type = type_named("u32")


class u64(Value):  # noqa: N801
    """An unsigned integer of 64 bits."""

    type = type_named("u64")


class s8(Value):  # noqa: N801
    """A signed integer of 8 bits: only memory holds it, a load of one makes an `s16`."""

    type = type_named("s8")


class s16(Value):  # noqa: N801
    """A signed integer of 16 bits."""

    type = type_named("s16")


class s32(Value):  # noqa: N801
    """A signed integer of 32 bits."""

    type = type_named("s32")


class s64(Value):  # noqa: N801
    """A signed integer of 64 bits."""

    type = type_named("s64")


class f16(Value):  # noqa: N801
    """A half."""

    type = type_named("f16")


class f16x2(Value):  # noqa: N801
    """Two halves in a register."""

    type = type_named("f16x2")


class bf16(Value):  # noqa: N801
    """A bfloat16."""

    type = type_named("bf16")


class bf16x2(Value):  # noqa: N801
    """Two bfloat16 in a register."""

    type = type_named("bf16x2")


class tf32(Value):  # noqa: N801
    """A TF32 number, in 32 bits."""

    type = type_named("tf32")


class f32(Value):  # noqa: N801
    """A float of single precision."""

    type = type_named("f32")


class f64(Value):  # noqa: N801
    """A float of double precision."""

    type = type_named("f64")


_CLASSES: dict[str, type[Value]] = {cls.type.name: cls for cls in Value.__subclasses__()}


def class_of(type_: Type) -> type[Value]:
    """The class of a type; the rarer ones are made when they are met."""
    found = _CLASSES.get(type_.name)
    if found is None:
        found = _CLASSES[type_.name] = type(type_.name, (Value,), {"type": type_})
    return found
