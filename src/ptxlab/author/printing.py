"""`ptx.printf`: the runtime's `vprintf`, with its arguments on the stack."""

from __future__ import annotations

from typing import Any

from ptxlab.author.arrays import Array
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Value, b8, b32, f64, s32, u32, u64

_DECLARATION = "\n.extern .func (.param .b32 result) vprintf(\n    .param .b64 format,\n    .param .b64 arguments\n);"


def printf(format: str, *arguments: Any) -> None:
    """Print from the GPU. `%f` takes a double, so that `f32` is converted, as C does."""
    trace = current("`ptx.printf`")
    program = trace.program
    if not format.isascii():
        refuse("non-ascii-character", "PTX is ASCII, and this format is not")
    if "vprintf" not in program.names:
        program.names.add("vprintf")
        program.items.insert(0, _DECLARATION)
    name = program.unique("format")
    data = [*format.encode(), 0]
    program.items.append(f"\n.global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};")
    values = [_promoted(argument) for argument in arguments]
    text = u64()
    emit("mov.u64", [Array(b8, "global", name, (len(data),), text)], out=text)
    emit("cvta.global.u64", [text], out=text)
    buffer = _buffer(values)
    trace.write("{")
    trace.write(".param .b64 format;")
    trace.write(".param .b64 arguments;")
    trace.write(".param .b32 result;")
    trace.write(f"st.param.b64 [format], {text.name};")
    trace.write(f"st.param.b64 [arguments], {buffer.name if buffer is not None else 0};")
    trace.write("call.uni (result), vprintf, (format, arguments);")
    trace.write("}")


def _promoted(argument: Any) -> Any:
    """An argument as C passes it to a function of any arguments: integers of 32 or 64 bits, doubles."""
    if isinstance(argument, Pointer):
        return argument.address
    if isinstance(argument, bool):
        argument = int(argument)
    if isinstance(argument, int):
        return u32(argument) if 0 <= argument < 1 << 32 else s32(argument)
    if isinstance(argument, float):
        return f64(argument)
    if not isinstance(argument, Value):
        refuse("not-an-operand", f"{argument!r:.40} cannot be printed")
    type = argument.type
    if type.kind == "p":
        return emit("selp.u32", [1, 0, argument])
    if type.kind == "f" and type.name != "f64" and type.lanes == 1:
        return emit(f"cvt.f64.{type.name}", [argument])
    if type.kind in "us" and type.width < 32:
        return emit(f"cvt.{type.kind}32.{type.name}", [argument])
    return argument


def _buffer(values: list[Value]) -> Value | None:
    """The address of the arguments, laid out as C does; None without any."""
    if not values:
        return None
    offsets, size = [], 0
    for value in values:
        bytes = value.type.width // 8
        size = -(-size // bytes) * bytes
        offsets.append(size)
        size += bytes
    from ptxlab.author.memory import local

    stack = local(b8, -(-size // 8) * 8, align=8, name="print_arguments")
    for value, offset in zip(values, offsets, strict=True):
        cls = b32 if value.type.width == 32 else type(value)
        stack.view(cls if value.type.kind != "f" else type(value))._advance([(offset, 1)]).store(value)
    address = u64()
    emit("cvta.local.u64", [stack.address], out=address)
    return address
