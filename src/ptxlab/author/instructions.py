"""`ptx`: every instruction, every special register, and the tools to write a kernel with."""

from __future__ import annotations

from typing import Any, NoReturn

from ptxlab.author import control, descriptors, fragments, memory, pipelines, printing, raw, tensor_memory, tiles
from ptxlab.author import timeline as timelines
from ptxlab.author.emit import emit
from ptxlab.author.lines import NoSuchName, refuse
from ptxlab.author.pointers import address, pointer_to
from ptxlab.author.registers import class_of
from ptxlab.author.spelling import Spelling, name_of, spelling, word_of
from ptxlab.author.trace import current
from ptxlab.author.violations import explain_name
from ptxlab.isa.special_registers import COMPONENTS, SPECIAL_REGISTERS, SpecialRegister
from ptxlab.isa.table import heads


class Components:
    """A special register of several components, `ptx.tid`: reading one, `ptx.tid.x`, is one `mov`."""

    def __init__(self, register: SpecialRegister) -> None:
        self._register = register

    def __getattr__(self, name: str) -> Any:
        if name not in COMPONENTS:
            if name.startswith("_"):
                raise AttributeError(name)
            refuse(
                "unknown-name",
                f"`{self._register.name}` has no component `.{name}`",
                helps=[f"`ptx.{self._register.name[1:]}.x`, `.y` or `.z`"],
                raises=NoSuchName,
            )
        return _read(self._register, f"{self._register.name}.{name}")

    def __dir__(self) -> list[str]:
        return ["x", "y", "z"]

    def __repr__(self) -> str:
        return f"{self._register.name}: {self._register.text}"

    def _as_one(self, *_: object) -> NoReturn:
        name = self._register.name[1:]
        refuse(
            "not-an-operand",
            f"`ptx.{name}` has several components, and one number is needed here",
            helps=[f"name the component: `ptx.{name}.x`, `.y` or `.z`"],
        )

    __index__ = __int__ = __float__ = __bool__ = _as_one
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _as_one
    __and__ = __rand__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _as_one


def _read(register: SpecialRegister, name: str) -> Any:
    trace = current(f"`ptx.{name[1:]}`")
    return emit(f"mov.{register.type.name}", [name], out=class_of(register.type).fresh(trace))


class Ptx:
    """All instructions by their names, `ptx.fma.rn.f32(a, b, c)`, and what else a kernel is written with."""

    when = staticmethod(control.when)
    otherwise = staticmethod(control.otherwise)
    loop = staticmethod(control.loop)
    leave = staticmethod(control.leave)
    leave_when = staticmethod(control.leave_when)
    repeat_when = staticmethod(control.repeat_when)
    range = staticmethod(control.counted)
    label = staticmethod(control.label)
    shared = staticmethod(memory.shared)
    local = staticmethod(memory.local)
    dynamic_shared = staticmethod(memory.dynamic_shared)
    constant = staticmethod(memory.constant)
    global_ = staticmethod(memory.global_)
    tile = staticmethod(tiles.tile)
    fragments = staticmethod(fragments.fragments)
    descriptor = staticmethod(descriptors.descriptor)
    warpgroup_fragments = staticmethod(descriptors.warpgroup_fragments)
    instruction_descriptor = staticmethod(tensor_memory.instruction_descriptor)
    tensor_memory = staticmethod(tensor_memory.tensor_memory)
    copy_pipeline = staticmethod(pipelines.copy_pipeline)
    barrier_pipeline = staticmethod(pipelines.barrier_pipeline)
    timeline = staticmethod(timelines.timeline)
    address = staticmethod(address)
    pointer_to = staticmethod(pointer_to)
    printf = staticmethod(printing.printf)
    registers = staticmethod(raw.registers)
    register = staticmethod(raw.register)
    declare = staticmethod(raw.declare)
    symbol = staticmethod(raw.symbol)
    at = staticmethod(raw.at)
    block = staticmethod(raw.block)
    text = staticmethod(raw.text)
    part = staticmethod(raw.part)
    literal = staticmethod(raw.literal)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        word = word_of(name)
        if word in heads():
            found = self.__dict__[name] = spelling(word)
            return found
        register = SPECIAL_REGISTERS.get(f"%{word}")
        if register is None:
            explain_name(name, [tool for tool in vars(Ptx) if not tool.startswith("_")])
        return Components(register) if register.vector else _read(register, register.name)

    def __getitem__(self, words: str) -> Spelling:
        """The spelling as PTX writes it: `ptx["ld.global.nc.f32"]`."""
        head, _, rest = words.partition(".")
        if head not in heads():
            explain_name(head, [])
        return spelling(head)[rest] if rest else spelling(head)

    def __dir__(self) -> list[str]:
        tools = [name for name in vars(Ptx) if not name.startswith("_")]
        return [*tools, *(name[1:] for name in SPECIAL_REGISTERS), *map(name_of, heads())]


ptx = Ptx()
