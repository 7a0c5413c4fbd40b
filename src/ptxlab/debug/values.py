"""What a thread of a recorded launch sees at a position: registers, memory, and what the names in expressions mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.debug.declarations import Declarations, Variable, VariableLocation
from ptxlab.debug.expressions import compiled, of_ptx
from ptxlab.debug.objects import (
    Object,
    Operand,
    Result,
    UnknownError,
    UnwrittenError,
    dereference,
    element,
    member,
    plain,
    text,
)
from ptxlab.debug.shared_arrays import declared_type
from ptxlab.debug.types import CudaType, array_of, named, of_dtype, vector
from ptxlab.device.layout import shared_variables, size_of_variable
from ptxlab.isa.types import TYPES
from ptxlab.trace import Trace
from ptxlab.trace import registers as registers_of
from ptxlab.trace.accesses import NAMES, SPACES, Region, Rows, unwritten
from ptxlab.trace.program import Value

_IN_WARP = ("%laneid", "%warpid")
_INDICES = {"threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid"}
_STACK = "%SPL"  # the register that holds the address of `__local_depot`
DEBUG_INFO = "-G"


@dataclass(frozen=True)
class Scope:
    """A thread of the grid at a position of a recorded launch, in one of the functions that it is in."""

    trace: Trace
    thread: int
    position: int
    declarations: Declarations
    """What the program declares in C++, as far as that is known."""
    instruction: int | None = None
    """The one that the function executes next."""
    step: int | None = None
    """Of a function that has called another, the step of the call."""
    level: int = 0
    """Of functions that are inlined at the instruction, how many are inside of this one."""
    depth: int = 1
    """How many are inlined there, with the function itself."""

    @property
    def block(self) -> int:
        return self.thread // self.trace.accesses.threads_in_block

    @property
    def own(self) -> int:
        """The number of the thread in its block."""
        return self.thread % self.trace.accesses.threads_in_block

    def registers(self) -> dict[str, Value]:
        """The registers that are known, by name."""
        found = registers_of.last_writes(self.trace.columns, self.thread, self._key)
        return {name: self.trace.value_of(found[name]) for name in sorted(found, key=registers_of.by_number)}

    @property
    def _key(self) -> int:
        """Up to where what was written counts: with what a call or a wait has returned before the next step."""
        return 2 * (self.position if self.step is None else self.step) + 1

    @property
    def index(self) -> tuple[int, ...]:
        """The index of the thread in its block."""
        return index_of(self.own, self.trace.block)

    @property
    def block_index(self) -> tuple[int, ...]:
        """The index of its block in the grid."""
        return index_of(self.block, self.trace.grid)

    @property
    def lane(self) -> int:
        return self.own % 32

    @property
    def warp(self) -> int:
        """The number of its warp in the block."""
        return self.own // 32

    def special(self) -> dict[str, int]:
        """What the thread is among others, by the special registers that say so."""
        found = {
            f"%{name}.{axis}": at
            for name, index in self._vectors().items()
            for axis, at in zip("xyz", index, strict=True)
        }
        return {**found, **dict(zip(_IN_WARP, (self.lane, self.warp), strict=True))}

    def _vectors(self) -> dict[str, tuple[int, ...]]:
        return {"tid": self.index, "ntid": self.trace.block, "ctaid": self.block_index, "nctaid": self.trace.grid}

    def register(self, name: str) -> Value:
        """One register, or an element of a vector."""
        special = self.special()
        if name in special:
            return special[name]
        return self.trace.value_of(self._written(name))

    def _written(self, name: str) -> registers_of.Written:
        written = registers_of.last_write(self.trace.columns, self.thread, name, self._key)
        if written is None:
            known = any(name in names for names in self.trace.program.registers)
            if known:
                raise UnwrittenError(f"`{name}` is not written yet")
            raise UnknownError(f"there is no register `{name}`")
        return written

    # Memory.

    def _resolved(self, space: str, address: int) -> tuple[int, int, int]:
        """The state space of an address, whose memory that is, and the address there."""
        found = self.trace.accesses.resolve(space, np.array([address], np.int64), np.array([self.thread]))
        return int(found[0][0]), int(found[1][0]), int(found[2][0])

    def size_at(self, space: str, address: int) -> int:
        """How many bytes of memory there are from an address on, to the end of an array or a state space."""
        if not 0 <= address < 1 << 63:
            return 0
        accesses = self.trace.accesses
        code, _, at = self._resolved(space, address)
        name = NAMES[code]
        if name in ("global", "const"):
            region = accesses.region_at(at)
            return 0 if region is None else max(region.base + region.size - at, 0)
        sizes = {"shared": accesses.shared_size, "local": accesses.local_size, "param": len(accesses.parameters)}
        return max(sizes[name] - at, 0)

    def read(self, space: str, address: int, size: int) -> bytes:
        """Bytes of a state space; `UnknownError` where there is no memory."""
        if not 0 <= address < 1 << 63:
            raise UnknownError(f"there is no memory at {address & (1 << 64) - 1:#x}")
        accesses = self.trace.accesses
        code, owner, at = self._resolved(space, address)
        name = NAMES[code]
        is_global = name in ("global", "const")
        if size > self.size_at(space, address):
            raise UnknownError(f"there is no {'' if is_global else f'{name} '}memory at {address:#x}")
        if name == "param":
            return accesses.parameters[at : at + size]
        content = unwritten(at, size)
        if is_global:
            region = accesses.region_at(at)
            assert region is not None
            content = np.frombuffer(region.data, np.uint8)[at - region.base :][:size].copy()
            code = SPACES["global"]
        rows = accesses.writes.touching(code, owner, at, size)
        accesses.write(rows.take(self.is_before(rows)), at, content)
        return content.tobytes()

    def is_before(self, rows: Rows) -> npt.NDArray[Any]:
        """Which of some writes were made up to the position."""
        return rows.key < 2 * self.position

    def place(self, space: str, address: int) -> str:
        """What is at an address: `A[3]`, or nothing that has a name."""
        code, _, at = self._resolved(space, address) if 0 <= address < 1 << 63 else (0, 0, 0)
        if NAMES[code] in ("global", "const"):
            region = self.trace.accesses.region_at(at)
            return "" if region is None else region.element(at)
        for variable, start in shared_variables(self.trace.program.variables) if NAMES[code] == "shared" else ():
            if start <= at < start + (size_of_variable(variable) or self.trace.accesses.shared_size):
                return variable.title + (f"+{at - start}" if at > start else "")
        return ""

    def shaped(self, address: int, index: tuple[int, ...]) -> Object:
        """An element of the array that is at an address, by several indices."""
        region = self.trace.accesses.region_at(address)
        if region is None or region.base != address:
            raise UnknownError("several indices are for an array that was an argument of the launch")
        found = self.array(region)
        for one in index:
            found = element(found, one, self)
        return found

    def array(self, region: Region) -> Object:
        """An array among the arguments, or a variable of the module, as it was given."""
        content = region.array(np.frombuffer(region.data, np.uint8))
        return Object(array_of(of_dtype(content.dtype), content.shape), "global", region.base)

    # Names.

    def variables(self) -> list[Variable]:
        """The variables of the function in C++, parameters first, those of the innermost scope last."""
        if self.instruction is None:
            return []
        function = self.trace.program.instructions[self.instruction][0].name
        return self.declarations.variables(function, self.instruction, self.level, self.depth)

    def find(self, name: str) -> Operand:
        """What a name means: a variable in C++, an index of CUDA, an argument, a variable of the PTX.

        `::A` is outside of the function: an array as the kernel was launched with it, a global variable.
        """
        is_outside, name = name.startswith("::"), name.removeprefix("::")
        variables = {} if is_outside else {one.name: one for one in self.variables()}
        if name in variables:
            return self.object(variables[name])
        if name in _INDICES:
            data = b"".join(at.to_bytes(4, "little") for at in self._vectors()[_INDICES[name]])
            return Object(vector("uint3" if name.endswith("Idx") else "dim3"), data=data)
        if name == "warpSize":
            return Result(32, named("int"))
        if name in self.declarations.globals:
            return self.object(self.declarations.globals[name])
        if name in self.declarations.enumerators:
            type, value = self.declarations.enumerators[name]
            return Result(value, type)
        found = self._of_ptx(name)
        if found is None and "this" in variables:
            this = dereference(self.object(variables["this"]), self)
            found = member(this, name, self) if this.type.member(name) else None
        if found is None:
            raise self._unknown(name)
        return found

    def _unknown(self, name: str) -> UnknownError:
        if self.declarations.is_name(name):
            is_inlined = self.level < self.depth - 1  # whose variables are not listed
            is_here = is_inlined or any(one.name == name for one in self.variables())
            if not self.declarations.are_locals_known and is_here:
                is_array = any(region.short == name for region in self.trace.accesses.regions)
                other = f", or ask for `::{name}`, as it was launched" if is_array else ""
                return UnknownError(f"`{name}` is not known in optimized code: start with `{DEBUG_INFO}`{other}")
            return UnwrittenError(f"`{name}` is not visible here: it is declared in another function or block")
        return UnknownError(f"there is nothing called `{name}`: registers start with %")

    def _of_ptx(self, name: str) -> Operand | None:
        """A shared variable, an array among the arguments, or a parameter, by the name in PTX."""
        for variable, start in shared_variables(self.trace.program.variables):
            if name in (variable.name, variable.title):
                return Object(self._type_of_shared(variable), "shared", start)
        for region in self.trace.accesses.regions:
            if region.short == name:
                return self.array(region)
        for parameter in self.trace.program.kernel.parameters:
            if name in (parameter.name, parameter.title):
                at = self.trace.program.parameters.offsets[id(parameter)]
                return Object(self._type_in_ptx(parameter), "param", at)
        return None

    def _type_of_shared(self, variable: ir.Variable) -> CudaType:
        """As C++ declares it, or else as PTX does."""
        declared = self.declarations.statics.get(variable.name)
        if declared is not None:
            return declared.type
        files = [item.name for item in self.trace.program.module.items if isinstance(item, ir.File)]
        found = declared_type(variable.title, size_of_variable(variable), files, self.declarations.type)
        return found or self._type_in_ptx(variable)

    def _type_in_ptx(self, variable: ir.Variable) -> CudaType:
        type = of_ptx(variable.type.name) if variable.type.name in TYPES else array_of(of_dtype(np.dtype("u1")), [8])
        if variable.vector > 1:
            type = array_of(type, [variable.vector])
        shape = [one or None for one in variable.dimensions]
        if variable.state_space == "shared" and shape[:1] == [None]:
            shape[0] = None
        return array_of(type, shape) if shape else type

    def object(self, variable: Variable) -> Object:
        """Where a variable in C++ is, with its type."""
        if self.instruction is None and not variable.is_static:
            raise UnwrittenError(f"`{variable.name}` has no value: the thread has ended")
        location = self.declarations.location(variable, self.instruction or 0)
        if location is None:
            if not self.declarations.are_locals_known:
                raise self._unknown(variable.name)
            raise UnwrittenError(f"`{variable.name}` has no value at this line")
        if location.constant is not None:
            return Object(variable.type, data=(location.constant & (1 << 64) - 1).to_bytes(8, "little"))
        if location.register:
            return self._in_register(variable, location)
        return self._in_memory(variable, location)

    def _in_register(self, variable: Variable, location: VariableLocation) -> Object:
        try:
            written = self._written(location.register)
        except UnwrittenError:
            raise UnwrittenError(f"`{variable.name}` is not written yet") from None
        data = self.trace.columns.bytes_at(written.entry, written.slot)
        if location.is_pointer:
            return Object(variable.type, "generic", int.from_bytes(data, "little") + location.offset)
        return Object(variable.type, data=data.ljust(variable.type.size, b"\0"))

    def _in_memory(self, variable: Variable, location: VariableLocation) -> Object:
        program, space = self.trace.program, variable.space
        if space == "local" and location.symbol.startswith("__local_depot"):
            base = self.register(_STACK)
            code, owner, at = self._resolved("local", int(base) + location.offset)
            rows = self.trace.accesses.writes.touching(code, owner, at, max(variable.type.size, 1))
            if not self.is_before(rows).any():
                raise UnwrittenError(f"`{variable.name}` is not written yet")
            return Object(variable.type, "local", int(base) + location.offset)
        for parameter in program.kernel.parameters:
            if parameter.name == location.symbol:
                at = program.parameters.offsets[id(parameter)] + location.offset
                return Object(variable.type, "param", at)
        for shared, start in shared_variables(program.variables):
            if shared.name == location.symbol:
                return Object(variable.type, "shared", start + location.offset)
        known = program.variables.by_name.get(location.symbol)
        if known is not None and space in ("global", "const"):
            return Object(variable.type, space, program.variables.address(known) + location.offset)
        raise UnknownError(f"`{variable.name}` is not in the recorded program")

    # Expressions.

    def operand(self, expression: str) -> Operand:
        """What an expression is: a number, or something of a type; raises `UnknownError` where there is nothing."""
        try:
            return compiled(expression.strip(), self.declarations.type)(self)
        except (TypeError, OverflowError, MemoryError) as wrong:
            raise UnknownError(f"`{expression}`: {wrong}") from None

    def evaluate(self, expression: str) -> Any:
        """The value of an expression for Python: a number, an array of NumPy, or an `Object` with its type."""
        return plain(self.operand(expression), self)

    def text(self, expression: str, style: str = "") -> str:
        """The value of an expression as people read it; `style` is a letter of gdb's `print/x`."""
        return text(self.operand(expression), self, style)

    def is_in_memory(self, expression: str) -> bool:
        """Whether an expression is something in memory, and not a number or a variable in a register."""
        found = self.operand(expression)
        return isinstance(found, Object) and found.data is None

    def location_of(self, expression: str) -> tuple[int, int, int, int]:
        """Where an element is, such as `c[3, 5]` or `As[ty][0]`: state space, whose it is, address and size."""
        found = self.operand(expression)
        if isinstance(found, Result) or found.data is not None:
            raise UnknownError(f"`{expression}` is not in memory: write `c[3, 5]`, or `shared.f32[address]`")
        return *self._resolved(found.space, found.address), found.type.size


def index_of(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    """The index of a block or a thread by its number."""
    x, y, _ = extents
    return number % x, number // x % y, number // x // y


def index_text(number: int, extents: Sequence[int]) -> str:
    """`(1,0,0)`."""
    return f"({','.join(map(str, index_of(number, extents)))})"


def shown(value: float) -> str:
    """A value of Python as text: whole numbers also in hexadecimal where they are large."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return f"{int(value)}" if -1024 < value < 1024 else f"{int(value)} ({int(value) & (1 << 64) - 1:#x})"
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=32, edgeitems=4)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(shown, value))
    return str(value)
