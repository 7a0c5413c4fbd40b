"""`ptx.printf`: the runtime's `vprintf`, with its arguments on the stack."""

from __future__ import annotations

import re
from typing import Any

from ptxlab.author.arrays import Array
from ptxlab.author.constants import is_number
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.memory import local
from ptxlab.author.operand import describe
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, b8, b32, f64, s32, s64, u32, u64

_DECLARATION = "\n.extern .func (.param .b32 result) vprintf(\n    .param .b64 format,\n    .param .b64 arguments\n);"
_CONVERSION = re.compile(r"%(?:%|[-+ #0]*(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|j|z|t)?([diouxXcpsaAeEfFgG]))")


def printf(format: str, *arguments: object) -> None:
    """Print from the GPU. `%f` takes a double, so that `f32` is converted, as C does; `%llu` takes 64 bits."""
    trace = current("`ptx.printf`")
    program = trace.program
    if not format.isascii():
        refuse("non-ascii-character", "PTX is ASCII, and this format is not")
    wanted = _conversions(format)
    if len(wanted) != len(arguments):
        refuse("operand-count", f"{format!r:.40} prints {len(wanted)} values, {len(arguments)} given")
    values = [_promoted(argument, conversion) for argument, conversion in zip(arguments, wanted, strict=True)]
    if "vprintf" not in program.names:
        program.names.add("vprintf")
        program.items.insert(0, _DECLARATION)
    name = program.unique("format")
    data = [*format.encode(), 0]
    program.items.append(f"\n.global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};")
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


def _conversions(format: str) -> list[tuple[str, bool, int]]:
    """What a format prints: each conversion, whether it is of a float, and the bits of what it takes."""
    found = []
    for part in re.finditer("%", re.sub("%%", "  ", format)):
        conversion = _CONVERSION.match(format, part.start())
        if conversion is None:
            refuse("illegal-format", f"{format[part.start() :]!r:.20} is not a conversion", helps=["`%%` prints a `%`"])
        width, precision, size, letter = conversion.groups()
        found += [("*", False, 32) for star in (width, precision) if star == "*"]
        is_float = letter in "aAeEfFgG"
        is_wide = is_float or letter in "ps" or size in ("l", "ll", "j", "z", "t")
        found.append((conversion[0], is_float, 64 if is_wide else 32))
    return found


def _promoted(argument: Any, conversion: tuple[str, bool, int]) -> Scalar:
    """An argument as C passes it to a function of any arguments: integers of 32 or 64 bits, doubles."""
    text, is_float, bits = conversion
    if is_number(argument) and (is_float or hasattr(argument, "__index__")):
        if is_float:
            return f64(float(argument))
        unsigned, signed = (u32, s32) if bits == 32 else (u64, s64)
        return unsigned(argument) if argument >= 0 else signed(argument)
    value = _widened(argument)
    if not isinstance(value, Scalar) or (value.type.kind == "f") != is_float or value.type.width != bits:
        what = f"a {'float' if is_float else f'whole number of {bits} bits'}"
        if text.endswith("s"):
            what = "text, by its generic address of 64 bits"
        refuse("operand-type", f"`{text}` prints {what}, and is given {describe(argument)}", helps=_fitting(argument))
    return value


def _fitting(argument: object) -> list[str]:
    if not isinstance(argument, Scalar) or argument.type.lanes > 1:
        return ["registers and Python numbers are printed"]
    type = argument.type
    letter = {"f": "%f", "s": "%d", "p": "%d"}.get(type.kind, "%u")
    return [f"`{letter if type.kind == 'f' or type.width < 64 else f'%ll{letter[1]}'}` prints a `{type.name}`"]


def _widened(argument: object) -> Any:
    """A register as wide as C passes it."""
    if isinstance(argument, Pointer):
        address = argument.address
        return address if address.type.width == 64 else emit("cvt.u64.u32", [address])
    if not isinstance(argument, Scalar):
        return argument
    type = argument.type
    if type.kind == "p":
        return emit("selp.u32", [1, 0, argument])
    if type.kind == "f" and type.name in ("f16", "bf16", "f32"):
        return emit(f"cvt.f64.{type.name}", [argument])
    if type.kind in "us" and type.width < 32:
        return emit(f"cvt.{type.kind}32.{type.name}", [argument])
    return argument


def _buffer(values: list[Scalar]) -> Scalar | None:
    """The address of the arguments, laid out as C does; None without any."""
    if not values:
        return None
    offsets, size = [], 0
    for value in values:
        bytes = value.type.width // 8
        size = -(-size // bytes) * bytes
        offsets.append(size)
        size += bytes
    stack = local(b8, -(-size // 8) * 8, align=8, name="print_arguments")
    for value, offset in zip(values, offsets, strict=True):
        cls = b32 if value.type.width == 32 else type(value)
        stack.view(cls if value.type.kind != "f" else type(value))._advance([(offset, 1)]).store(value)
    address = u64()
    emit("cvta.local.u64", [stack.address], out=address)
    return address
