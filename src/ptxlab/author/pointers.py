"""Pointers: an address with the type and the state space of what is there.

`x[i]` is the one load that they name, `x[i] = v` the one store, `x + i` another pointer. A Python integer becomes part
of the address (`[%rd1+16]`) and costs nothing; a register as index costs one `mad`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self

from ptxlab.author.elements import element_of, is_structure, memory_type, spell_element, stores
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.operand import Kind, Operand, describe
from ptxlab.author.operators import compare, conversion
from ptxlab.author.trace import Trace, declared_as
from ptxlab.author.values import Scalar, b16, s16, u16, u32, u64
from ptxlab.isa.operand import Expected

_WIDENED = {"b": b16, "u": u16, "s": s16}


class Pointer(Operand):
    """An address: a register or the name of a variable, and a number of bytes."""

    is_pointer = True
    to_structures: ClassVar[type[Pointer]]  # the subclass that points to structures, see `fields.py`

    def __init__(
        self,
        element: type[Scalar],
        space: str | None,
        register: Scalar | None = None,
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

    def __init_subclass__(cls, to_structures: bool = False) -> None:
        if to_structures:
            Pointer.to_structures = cls

    @property
    def operand_kind(self) -> Kind:
        """Its state space, and what the address is."""
        return ("*", self.space, self.base_shape)

    def print_operand(self, trace: Trace, expected: Expected) -> str:
        """The address in brackets, or as a value."""
        return self.print_address(trace) if expected.kind == "address" else self.print_value(trace, expected)

    def described(self) -> str:
        """The memory that it points into."""
        return f"a pointer into {self.space or 'generic'} memory"

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
    def _base(self) -> Scalar:
        if self.register is not None:
            return self.register
        register = self.copy().register
        assert register is not None
        return register

    @property
    def address(self) -> Scalar:
        """The address in a register: of 32 bits in shared memory, else of 64."""
        if not self.offset:
            return self._base
        value: Scalar = emit(f"add.{self._base.type.name}", [self._base, self.offset])
        return value

    @property
    def generic(self) -> Pointer:
        """The same address, for what points anywhere: a `cvta`, in shared memory after a `cvt` to 64 bits."""
        if self.space is None:
            return self
        address = self.address
        if address.type.width < 64:
            address = emit("cvt.u64.u32", [address])
        space = self.space.partition("::")[0]
        return self._elsewhere(None, emit(f"cvta.{space}.u64", [address]))

    def _moved(self, register: Scalar | None, symbol: str | None, offset: int) -> Pointer:
        return self._elsewhere(self.space, register, symbol, offset)

    def _elsewhere(
        self, space: str | None, register: Scalar | None, symbol: str | None = None, offset: int = 0
    ) -> Pointer:
        return Pointer(self.element, space, register, symbol, offset, self.lanes)

    def part(self, element: type[Scalar], offset: int) -> Pointer:
        """A pointer to another type, so many bytes after this one."""
        return Pointer(element, self.space, self.register, self.symbol, self.offset + offset)

    def _advance(self, steps: Sequence[tuple[object, int]], out: Scalar | None = None) -> Pointer:
        """This address and each index times its bytes: numbers go into the offset, registers cost a `mad` each."""
        offset, register, symbol = self.offset, self.register, self.symbol
        for index, size in steps:
            if isinstance(index, Scalar):
                register, symbol = _multiply_add(index, size, self._base if register is None else register, out), None
            else:
                offset += _whole(index) * size
        if not -(1 << 63) <= offset < 1 << 63:
            refuse("immediate-range", f"no two addresses are {offset} bytes apart")
        return self._moved(register, symbol, offset)

    def __add__(self, index: object) -> Pointer:
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
            emit(f"mov.{register.type.name}", [self], out=register)
        elif self.offset:
            emit(f"add.{register.type.name}", [self._base, self.offset], out=register)
        else:
            register.set(self._base)
        return self._elsewhere(self.space, register)

    def __sub__(self, index: object) -> Pointer:
        return self + -self._subtracted(index)

    def __isub__(self, index: object) -> Self:
        return self.__iadd__(-self._subtracted(index))

    def _subtracted(self, index: object) -> int:
        if isinstance(index, Pointer):
            refuse(
                "no-operator",
                "no instruction counts from a pointer to another",
                helps=["`p.address - q.address` are the bytes between them"],
            )
        if isinstance(index, Scalar):
            refuse("no-operator", "no instruction subtracts an index from a pointer", helps=["add a negative index"])
        return _whole(index)

    def __iadd__(self, index: object) -> Self:
        """Move the pointer itself: its register is written."""
        if self.register is None or self.symbol is not None:
            refuse("no-operator", "an array stays where it is", helps=["`p = array.copy()` is a pointer to it"])
        if self.register.lent:
            refuse(
                "shared-register",
                f"other pointers count from `{self.register.name}` too, and would move along",
                helps=["give this one a register of its own: `p = p.copy()`"],
            )
        if isinstance(index, Scalar):
            self._advance([(index, self.size)], out=self.register)
            return self
        emit(f"add.{self.register.type.name}", [self.register, _whole(index) * self.size], out=self.register)
        return self

    def at(self, *indices: object) -> Pointer:
        """The pointer to an element."""
        return self._lend(self._element(indices))

    def _element(self, indices: tuple[object, ...]) -> Pointer:
        if len(indices) != 1:
            refuse("not-an-index", f"a pointer takes one index, {len(indices)} given")
        return self._advance([(indices[0], self.size)])

    def __getitem__(self, index: object) -> Any:
        return self._element(index if isinstance(index, tuple) else (index,)).load()

    def __setitem__(self, index: object, value: object) -> None:
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

    def __lt__(self, other: object) -> Any:
        return self._compare("lt", other)

    def __le__(self, other: object) -> Any:
        return self._compare("le", other)

    def __gt__(self, other: object) -> Any:
        return self._compare("gt", other)

    def __ge__(self, other: object) -> Any:
        return self._compare("ge", other)

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", other)

    def _compare(self, relation: str, other: object) -> Any:
        """`p < end`: a predicate, of the addresses."""
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
        return emit(f"ld{self._modifiers}", [self], out=out)

    def store(self, value: object) -> None:
        """Write the element that this points to, by one `st`."""
        parts = value if isinstance(value, (tuple, list)) else (value,)
        if len(parts) != self.lanes:
            wanted = "one element" if self.lanes == 1 else f"a vector of {self.lanes}"
            hint = f"`x.v{len(parts)}[i]` is a vector" if self.lanes == 1 else f"give a tuple of {self.lanes}"
            refuse("vector-size", f"{wanted} is stored here, {len(parts)} given", helps=[hint])
        for part in parts:
            self._check_stored(part)
        if self.element.type.kind == "f" and memory_type(self.element)[0] == "b":
            parts = [part if isinstance(part, Scalar) else self.element(part) for part in parts]
        emit(f"st{self._modifiers}", [self, tuple(parts) if self.lanes > 1 else parts[0]])

    def _check_stored(self, value: object) -> None:
        wanted = self.element.type
        if isinstance(value, Scalar) and not stores(wanted, value.type):
            helps = [f"convert it: {conversion(wanted, value.type)}"]
            if declared_as(value.type) == declared_as(wanted):
                helps.append(f"`x.view({wanted.name})` is the same bits")
            refuse("type-clash", f"a `{value.type.name}` is stored as `{wanted.name}`", helps=helps)

    @property
    def _modifiers(self) -> str:
        if self.lanes not in (1, 2, 4, 8):
            refuse("vector-size", f"no instruction has vectors of {self.lanes!r:.40}", helps=["they have 2, 4 or 8"])
        space = f".{self.space}" if self.space else ""
        return f"{space}{f'.v{self.lanes}' if self.lanes > 1 else ''}.{memory_type(self.element)}"

    def view(self, element: object) -> Pointer:
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


def _whole(index: object) -> int:
    if not hasattr(index, "__index__") or hasattr(index, "__len__"):
        refuse("not-an-index", f"{index!r:.40} is not an index", helps=["an index is an integer or a register"])
    return operator.index(index)


def _multiply_add(index: Scalar, size: int, base: Scalar, out: Scalar | None) -> Scalar:
    """`index * size + base`, as wide as the base."""
    kind, width = index.type.kind, index.type.width
    if kind not in "us" or index.type.lanes > 1 or width not in (32, base.type.width):
        refuse("not-an-index", f"a `{index.type.name}` is not an index", helps=["an index is a u32, s32, u64 or s64"])
    mode = "wide" if width < base.type.width else "lo"
    text, operands = f"mad.{mode}.{kind}{width}", [index, size, base]
    if size == 1 and mode == "lo":
        text, operands = f"add.{kind}{width}", [base, index]
    value: Scalar = emit(text, operands, out=type(base)() if out is None else out)
    return value


def address(base: Pointer, offset: Any = 0) -> Pointer:
    """An address some bytes after a pointer; also of a `u64` or `u32` register, then a generic one."""
    if isinstance(base, Scalar):
        base = Pointer(b16, None, base)
    if not isinstance(base, Pointer):
        refuse("not-an-operand", f"{base!r:.40} is not a pointer")
    return base._advance([(offset, 1)])


def pointer_to(element: object, space: str | None, register: Scalar) -> Pointer:
    """A pointer whose address a register holds."""
    return pointing(element, space, register)


def pointing(
    element: Any, space: str | None, register: Scalar | None = None, symbol: str | None = None, offset: int = 0
) -> Pointer:
    """A pointer to numbers of PTX, or to structures."""
    if not is_structure(element):
        return Pointer(element_of(element), space, register, symbol, offset)
    return Pointer.to_structures(element, space, register, symbol, offset)


def address_class(space: str | None) -> type[Scalar]:
    """What holds an address of a state space: 32 bits in shared memory, else 64."""
    return u32 if space is not None and space.partition("::")[0] == "shared" else u64
