"""Pointers: an address with the type and the state space of what lies there.

`x[i]` is the one load that they name, `x[i] = v` the one store, `x + i` another pointer. A Python integer becomes part
of the address (`[%rd1+16]`) and costs nothing; a register as index costs one `mad`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from ptxlab.author.lines import refuse
from ptxlab.author.operators import compare, conversion
from ptxlab.author.trace import Trace, declared_as
from ptxlab.author.values import Value, b16, class_of, s16, u16, u32, u64
from ptxlab.isa import Type
from ptxlab.isa.operand import Expected

_MEMORY_TYPES = frozenset("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64".split())
_POINTED = ("global", "shared", "const", "local", "param", "generic")
_WIDENED = {"b": b16, "u": u16, "s": s16}


def _emit(text: str, arguments: Sequence[Any], out: Any = None) -> Any:
    from ptxlab.author.emit import emit

    return emit(text, arguments, out=out)


def element_of(element: Any) -> type[Value]:
    """The type of an element, where it is one that memory holds."""
    if isinstance(element, type) and issubclass(element, Value) and element.type.kind != "p":
        return element
    name = element.__name__ if isinstance(element, type) else f"{element!r:.40}"
    return refuse(
        "missing-type", f"memory holds no `{name}`", helps=["an element is a number of PTX: `f32`, `u8`, `b64`"]
    )


def is_structure(element: Any) -> bool:
    """Whether several fields lie there: a subclass of `struct`, or `struct[24, 8]`."""
    from ptxlab.author.structures import StructType, struct

    return isinstance(element, StructType) or (isinstance(element, type) and issubclass(element, struct))


def spell_element(element: Any) -> str:
    """What lies there, as an annotation says it."""
    return str(getattr(element, "__name__", element))


def stores(wanted: Type, given: Type) -> bool:
    """Whether a register is stored where another type lies: untyped bits of its width, and any where bytes lie."""
    return wanted.width <= 8 or given is wanted or ("b" in (given.kind, wanted.kind) and given.width == wanted.width)


def memory_type(element: type[Value]) -> str:
    """What `ld` and `st` call a type: itself, or bits of its width."""
    return element.type.name if element.type.name in _MEMORY_TYPES else f"b{element.type.width}"


@dataclass(frozen=True, slots=True)
class PointerType:
    """`pointer[f32]` in an annotation."""

    element: Any  # a number of PTX, or a structure
    space: str | None = "global"


class Pointer:
    """An address: a register or the name of a variable, and a number of bytes."""

    def __init__(
        self,
        element: type[Value],
        space: str | None,
        register: Value | None = None,
        symbol: str | None = None,
        offset: int = 0,
        lanes: int = 1,
    ) -> None:
        self.element = element
        self.space = space
        self.register = register
        self.symbol = symbol
        self.offset = offset
        self.lanes = lanes

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return max(self.element.type.width // 8, 1) * self.lanes

    @property
    def base_shape(self) -> str:
        """What the address is, to the table of instructions."""
        if self.symbol is not None:
            return f"&{self.space}"
        assert self.register is not None
        return self.register.type.name

    def __repr__(self) -> str:
        base = self.symbol or (self.register.name if self.register is not None else "")
        return f"<pointer[{spell_element(self.element)}, {self.space or 'generic'}] {base}+{self.offset}>"

    def print_address(self, trace: Trace) -> str:
        """`[%rd1+16]`"""
        self._check_owner(trace)
        base = self.symbol if self.symbol is not None else self._base.read(trace)
        return f"[{base}+{self.offset}]" if self.offset else f"[{base}]"

    def print_value(self, trace: Trace, expected: Expected) -> str:
        """The address itself as an operand."""
        self._check_owner(trace)
        if self.symbol is not None:
            return f"{self.symbol}+{self.offset}" if self.offset else self.symbol
        return self.address.read(trace)

    def _check_owner(self, trace: Trace) -> None:
        """Refuse an array that was declared in another kernel or device function."""
        owner = trace if self.register is None else self.register.trace
        if owner is not trace and (self.symbol in owner.names or owner.program is not trace.program):
            refuse(
                "foreign-register",
                f"`{self.symbol}` is an array of `{owner.name}`, and this is `{trace.name}`",
                helps=["declare it here, or pass its address to a device function: `shared_pointer[f32]`"],
            )

    @property
    def _base(self) -> Value:
        if self.register is not None:
            return self.register
        register = self.copy().register
        assert register is not None
        return register

    @property
    def address(self) -> Value:
        """The address in a register: of 32 bits in shared memory, else of 64."""
        if not self.offset:
            return self._base
        value: Value = _emit(f"add.{self._base.type.name}", [self._base, self.offset])
        return value

    @property
    def generic(self) -> Pointer:
        """The same place, for what points anywhere: a `cvta`, in shared memory after a `cvt` to 64 bits."""
        if self.space is None:
            return self
        address = self.address
        if address.type.width < 64:
            address = _emit("cvt.u64.u32", [address])
        space = self.space.partition("::")[0]
        return self._elsewhere(None, _emit(f"cvta.{space}.u64", [address]))

    def _moved(self, register: Value | None, symbol: str | None, offset: int) -> Pointer:
        return self._elsewhere(self.space, register, symbol, offset)

    def _elsewhere(
        self, space: str | None, register: Value | None, symbol: str | None = None, offset: int = 0
    ) -> Pointer:
        return Pointer(self.element, space, register, symbol, offset, self.lanes)

    def part(self, element: type[Value], offset: int) -> Pointer:
        """So many bytes behind this, what points to another type."""
        return Pointer(element, self.space, self.register, self.symbol, self.offset + offset)

    def _advance(self, steps: Sequence[tuple[Any, int]], out: Value | None = None) -> Pointer:
        """This address and each index times its bytes: numbers go into the offset, registers cost a `mad` each."""
        offset, register, symbol = self.offset, self.register, self.symbol
        for index, size in steps:
            if isinstance(index, Value):
                register, symbol = _multiply_add(index, size, self._base if register is None else register, out), None
            else:
                offset += _whole(index) * size
        if not -(1 << 63) <= offset < 1 << 63:
            refuse("immediate-range", f"no address lies {offset} bytes from another")
        return self._moved(register, symbol, offset)

    def __add__(self, index: Any) -> Pointer:
        return self._lend(self._advance([(index, self.size)]))

    __radd__ = __add__

    def _lend(self, other: Pointer) -> Pointer:
        """Remember that another pointer counts from the same register: then none of them may move it."""
        if other.register is self.register and self.register is not None:
            self.register.lent = True
        return other

    def copy(self) -> Pointer:
        """A pointer with a register of its own, which `+=` may move."""
        register = address_class(self.space)()
        if self.symbol is not None:
            _emit(f"mov.{register.type.name}", [self], out=register)
        elif self.offset:
            _emit(f"add.{register.type.name}", [self._base, self.offset], out=register)
        else:
            register.set(self._base)
        return self._elsewhere(self.space, register)

    def __sub__(self, index: Any) -> Pointer:
        return self + -self._subtracted(index)

    def __isub__(self, index: Any) -> Self:
        return self.__iadd__(-self._subtracted(index))

    def _subtracted(self, index: Any) -> int:
        if isinstance(index, Pointer):
            refuse(
                "no-operator",
                "no instruction counts from a pointer to another",
                helps=["`p.address - q.address` are the bytes between them"],
            )
        if isinstance(index, Value):
            refuse("no-operator", "no instruction subtracts an index from a pointer", helps=["add a negative index"])
        return _whole(index)

    def __iadd__(self, index: Any) -> Self:
        """Move the pointer itself: its register is written."""
        if self.register is None or self.symbol is not None:
            refuse("no-operator", "an array stays where it is", helps=["`p = array.copy()` is a pointer to it"])
        if self.register.lent:
            refuse(
                "shared-register",
                f"other pointers count from `{self.register.name}` too, and would move along",
                helps=["give this one a register of its own: `p = p.copy()`"],
            )
        if isinstance(index, Value):
            self._advance([(index, self.size)], out=self.register)
            return self
        _emit(f"add.{self.register.type.name}", [self.register, _whole(index) * self.size], out=self.register)
        return self

    def at(self, *indices: Any) -> Pointer:
        """The pointer to an element."""
        return self._lend(self._element(indices))

    def _element(self, indices: tuple[Any, ...]) -> Pointer:
        if len(indices) != 1:
            refuse("not-an-index", f"a pointer takes one index, {len(indices)} given")
        return self._advance([(indices[0], self.size)])

    def __getitem__(self, index: Any) -> Any:
        return self._element(index if isinstance(index, tuple) else (index,)).load()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._element(index if isinstance(index, tuple) else (index,)).store(value)

    def _uncounted(self) -> NoReturn:
        refuse("value-needed", "a pointer does not say how many elements there are", helps=["loop by `range(count)`"])

    __iter__ = __len__ = _uncounted

    def __bool__(self) -> bool:
        refuse(
            "value-needed",
            "whether a pointer is null is known only on the GPU",
            helps=["`x.address != 0` is a predicate", "`x is None` asks whether Python has a pointer"],
        )

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare("ge", other)

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", other)

    def _compare(self, relation: str, other: Any) -> Any:
        """`p < end`: a predicate, of the addresses."""
        from ptxlab.author.emit import describe

        if not isinstance(other, Pointer) or other.space != self.space:
            refuse(
                "type-clash",
                f"{describe(self)} is compared with {describe(other)}",
                helps=["pointers into one state space compare", "`x.address` is a number, `x is None` asks Python"],
            )
        return compare(relation, self.address, other.address)

    def load(self) -> Any:
        """The element that this points to, by one `ld`; a tuple for a vector."""
        width = self.element.type.width
        element = _WIDENED.get(self.element.type.kind, b16) if width == 8 else self.element
        out = element() if self.lanes == 1 else tuple(element() for _ in range(self.lanes))
        return _emit(f"ld{self._modifiers}", [self], out=out)

    def store(self, value: Any) -> None:
        """Write the element that this points to, by one `st`."""
        parts = value if isinstance(value, (tuple, list)) else (value,)
        if len(parts) != self.lanes:
            wanted = "one element" if self.lanes == 1 else f"a vector of {self.lanes}"
            told = f"`x.v{len(parts)}[i]` is a vector" if self.lanes == 1 else f"give a tuple of {self.lanes}"
            refuse("vector-size", f"{wanted} is stored here, {len(parts)} given", helps=[told])
        for part in parts:
            self._check_stored(part)
        if self.element.type.kind == "f" and memory_type(self.element)[0] == "b":
            parts = [part if isinstance(part, Value) else self.element(part) for part in parts]
        _emit(f"st{self._modifiers}", [self, tuple(parts) if self.lanes > 1 else parts[0]])

    def _check_stored(self, value: Any) -> None:
        wanted = self.element.type
        if isinstance(value, Value) and not stores(wanted, value.type):
            helps = [f"convert it: {conversion(wanted, value.type)}"]
            if declared_as(value.type) == declared_as(wanted):
                helps.append(f"`x.view({wanted.name})` is the same bits")
            refuse("type-clash", f"a `{value.type.name}` is stored where `{wanted.name}` lies", helps=helps)

    @property
    def _modifiers(self) -> str:
        if self.lanes not in (1, 2, 4, 8):
            refuse("vector-size", f"no instruction has vectors of {self.lanes!r:.40}", helps=["they have 2, 4 or 8"])
        space = f".{self.space}" if self.space else ""
        return f"{space}{f'.v{self.lanes}' if self.lanes > 1 else ''}.{memory_type(self.element)}"

    def view(self, element: Any) -> Pointer:
        """The same address, of elements of another type."""
        return pointing(element, self.space, self.register, self.symbol, self.offset)

    def vector(self, lanes: int) -> Pointer:
        """The same address, of vectors of so many elements: 2, 4 or 8 are loaded and stored by one instruction."""
        return Pointer(self.element, self.space, self.register, self.symbol, self.offset, lanes)

    @property
    def v2(self) -> Pointer:
        """`x.v2[i]` is the pair at byte `2 * i * size`."""
        return self.vector(2)

    @property
    def v4(self) -> Pointer:
        """`x.v4[i]` is the vector of four at byte `4 * i * size`."""
        return self.vector(4)

    @property
    def v8(self) -> Pointer:
        """`x.v8[i]` is the vector of eight at byte `8 * i * size`."""
        return self.vector(8)


def _whole(index: Any) -> int:
    if not hasattr(index, "__index__") or hasattr(index, "__len__"):
        refuse("not-an-index", f"{index!r:.40} is no index", helps=["an index is an integer or a register"])
    return operator.index(index)


def _multiply_add(index: Value, size: int, base: Value, out: Value | None) -> Value:
    """`index * size + base`, as wide as the base."""
    kind, width = index.type.kind, index.type.width
    if kind not in "us" or index.type.lanes > 1 or width not in (32, base.type.width):
        refuse("not-an-index", f"a `{index.type.name}` is no index", helps=["an index is a u32, s32, u64 or s64"])
    mode = "wide" if width < base.type.width else "lo"
    text, operands = f"mad.{mode}.{kind}{width}", [index, size, base]
    if size == 1 and mode == "lo":
        text, operands = f"add.{kind}{width}", [base, index]
    value: Value = _emit(text, operands, out=type(base)() if out is None else out)
    return value


if TYPE_CHECKING:
    # To type checkers and editors these are pointers; when Python runs, `pointer[f32]` is a `PointerType`.
    E = TypeVar("E")

    class pointer(Pointer, Generic[E]):  # noqa: N801 - stand in annotations beside `f32`
        """A pointer into global memory."""

    class shared_pointer(Pointer, Generic[E]):  # noqa: N801
        """A pointer into shared memory."""

    class generic_pointer(Pointer, Generic[E]):  # noqa: N801
        """A pointer that may point anywhere."""
else:

    class pointer:  # noqa: N801
        """`pointer[f32]` points into global memory, `pointer[f32, "const"]` into another space."""

        space = "global"

        def __class_getitem__(cls, item: Any) -> PointerType:
            element, space = item if isinstance(item, tuple) else (item, cls.space)
            if space not in _POINTED:
                known = ", ".join(f"`{name}`" for name in _POINTED)
                refuse("missing-type", f"no pointer points into {space!r:.40}", helps=[f"there are {known}"])
            if not is_structure(element):
                element_of(element)
            return PointerType(element, None if space == "generic" else space)

    class shared_pointer(pointer):  # noqa: N801
        """`shared_pointer[f32]` points into shared memory."""

        space = "shared"

    class generic_pointer(pointer):  # noqa: N801
        """`generic_pointer[f32]` may point anywhere."""

        space = "generic"


def address(base: Any, offset: Any = 0) -> Pointer:
    """An address some bytes behind a pointer; also of a `u64` or `u32` register, then a generic one."""
    if isinstance(base, Value):
        base = Pointer(class_of(b16.type), None, base)
    if not isinstance(base, Pointer):
        refuse("not-an-operand", f"{base!r:.40} is no pointer")
    return base._advance([(offset, 1)])


def pointer_to(element: Any, space: str | None, register: Value) -> Pointer:
    """A pointer whose address a register holds."""
    return pointing(element, space, register)


def pointing(
    element: Any, space: str | None, register: Value | None = None, symbol: str | None = None, offset: int = 0
) -> Pointer:
    """A pointer to numbers of PTX, or to structures."""
    if not is_structure(element):
        return Pointer(element_of(element), space, register, symbol, offset)
    from ptxlab.author.fields import Structures

    return Structures(element, space, register, symbol, offset)


def address_class(space: str | None) -> type[Value]:
    """What holds an address of a state space: 32 bits in shared memory, else 64."""
    return u32 if space is not None and space.partition("::")[0] == "shared" else u64
