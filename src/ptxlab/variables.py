"""Variables of a module, for the host: `Module.set` and `Module.get`.

Each device has memory of its own for them. `set` writes to all of it, and the bytes are remembered for what is loaded
later; `get` reads one device's. A value becomes bytes as the variable is declared, and is refused if it can't.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

from ptxlab import gpu, ir
from ptxlab.device import layout
from ptxlab.device.placed_objects import fits, kind_of
from ptxlab.launch import read_device
from ptxlab.launch.contexts import context_of, given_to, refuse_wrong
from ptxlab.report import KernelError, error
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Form = tuple[numpy.dtype[Any], tuple[int, ...]]

_LISTED = 8  # variables that are named where a wrong one was asked for
_DECLARED_AS_BYTES = "compilers declare what C++ calls an array or a structure as bytes: pass an array, or say `dtype`"


def set(module: ir.Module, name: str, value: object, dtype: object = None) -> None:
    """Give a variable a value; see `ptxlab.ir.Module.set`."""
    refuse_wrong(module)
    context = context_of(module)
    placed = layout.Variables(module, [])
    opaque = placed.by_name.get(name)
    if opaque is not None and layout.is_opaque(opaque):
        context.host.objects[name] = _objects(module, opaque, value)
        return
    variable = find(module, placed, name)
    data = bytes_of(module, variable, value, dtype)
    gpu.write_variable(module, context.on_gpu, name, data)
    context.host.given[name] = data
    context.memory.of(placed, variable).raw = data


def _objects(module: ir.Module, variable: ir.Variable, value: object) -> list[object]:
    """The textures, surfaces or samplers that a variable is to refer to: one for each element."""
    kind, elements = kind_of(variable), variable.elements or 1
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) != elements:
        _refuse(module, variable, f"`{variable.name}` has {elements} elements, the value {len(values)}")
    for one in values:
        if not fits(one, kind):
            made = {"texref": "Texture(array)", "surfref": "Surface(array)", "samplerref": "Sampler()"}[kind]
            message = f"`{variable.name}` is a `.{kind}`, not a {one.__class__.__name__}"
            _refuse(module, variable, message, f"pass `ptxlab.{made}`")
    return values


def given(module: ir.Module, name: str, value: object) -> bytes:
    """The bytes that `set` would give to a variable."""
    return bytes_of(module, find(module, layout.Variables(module, []), name), value)


def get(module: ir.Module, name: str, dtype: object = None, device: str = "auto") -> Array:
    """A copy of a variable; see `ptxlab.ir.Module.get`."""
    chosen_kind, number = read_device(device)
    if chosen_kind == "both":
        raise ValueError("device='both': each of the two has its own; expected one of 'auto', 'cpu', 'cuda', 'cuda:1'")
    refuse_wrong(module)
    placed = layout.Variables(module, [])
    ran_on = context_of(module).host.ran_on
    chosen = ran_on if chosen_kind == "auto" else None if chosen_kind == "cpu" else number
    return _read(module, placed, find(module, placed, name), dtype, chosen)


_LARGEST = 64 << 20  # bytes of a variable that is copied though no one has asked for it


def written(module: ir.Module) -> dict[str, Array]:
    """All that a kernel may have written, where one ran last; without what starts with an address, or is very large."""
    refuse_wrong(module)
    ran_on = context_of(module).host.ran_on
    placed = layout.Variables(module, [])
    return {
        variable.name: _read(module, placed, variable, None, ran_on)
        for variable in placed.by_name.values()
        if id(variable) in placed.global_addresses
        and variable.state_space.startswith("global")
        and 0 < layout.size_of_variable(variable) <= _LARGEST
        and not layout.has_addresses(variable)
    }


def forget(module: ir.Module) -> None:
    """Initialize all variables again on every device, as they were set or as the PTX says; nothing is allocated."""
    context_of(module).start_anew()


def inherit(module: ir.Module, other: ir.Module) -> None:
    """Have variables start with what those of another module were set to; see `ptxlab.ir.Module.inherit`."""
    if values := given_to(other):
        context_of(module).host.given |= values


def _read(
    module: ir.Module, placed: layout.Variables, variable: ir.Variable, dtype: object, number: int | None
) -> Array:
    """A copy of a variable, from the GPU of that number, or from the emulator."""
    import numpy

    kind, shape = form_of(module, variable, dtype)
    context = context_of(module)
    if number is None:
        data = bytes(context.memory.of(placed, variable))
    else:
        chosen, name = gpu.gpu(number), variable.name
        found = gpu.read_variable(module, context.on_gpu, name, layout.size_of_variable(variable), chosen)
        # None where no kernel has run there, or where the compiler has left it out since no kernel uses it.
        if found is None and name not in context.host.given and layout.has_addresses(variable):
            _refuse(module, variable, f"`{name}` holds addresses, which {chosen.name} has once a kernel has run there")
        data = context.memory.initial_value(placed, variable) if found is None else found
    return numpy.frombuffer(data, kind).reshape(shape).copy()


def find(module: ir.Module, placed: layout.Variables, name: str) -> ir.Variable:
    """The variable of that name, if the host can set it."""
    variable = placed.by_name.get(name)
    if variable is None:
        _refuse_name(name, [v.name for v in placed.by_name.values() if id(v) in placed.global_addresses])
    if id(variable) not in placed.global_addresses:
        space = variable.type.name if variable.type.kind == "o" else variable.state_space
        _refuse(module, variable, f"`{name}` is a `.{space}` variable; the host sets `.global` and `.const` ones")
    if not layout.size_of_variable(variable):
        _refuse(module, variable, f"`{name}` has no memory here: its size is left to another module")
    return variable


def _refuse_name(name: str, known: list[str]) -> NoReturn:
    meant = nearest(name, known) or next((other for other in known if _mangled(name) in other), None)
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    listed = ", ".join(f"`{other}`" for other in known[:_LISTED]) + more
    found = error(
        "bad-argument",
        f"the module has no variable `{name}`",
        None,
        notes=[] if meant else [f"it has {listed or 'none'}"],
        helps=[f"did you mean `{meant}`?"] if meant else [],
    )
    raise KernelError([found])


def _mangled(name: str) -> str:
    """`ns::table` as it is within the name that C++ gives it: `2ns5table`."""
    return "".join(f"{len(part)}{part}" for part in name.split("::"))


def form_of(module: ir.Module, variable: ir.Variable, dtype: Any = None) -> Form:
    """The type and the shape of a variable: as it is declared, or as its bytes are with another type."""
    import numpy

    type = variable.type
    bits = min(type.bits, 64)  # `.b128` is two words
    declared = numpy.dtype(f"{'f' if type.kind == 'f' else 'i' if type.kind == 's' else 'u'}{bits // 8}")
    size = layout.size_of_variable(variable)
    inner = [extent or 1 for extent in variable.dimensions[1:]]
    inner += [extent for extent in (variable.vector, type.width // bits) if extent > 1]
    # The first extent may be left to the initial value.
    outer = [size // declared.itemsize // prod(inner)] if variable.dimensions else []
    shape = (*outer, *inner)
    if dtype is None:
        return declared, shape
    kind = numpy.dtype(dtype)
    if kind.hasobject or not kind.itemsize:
        _refuse(module, variable, f"`{variable.name}` can't hold {kind}, which is not a type of numbers")
    if size % kind.itemsize:
        _refuse(module, variable, f"`{variable.name}` has {size} bytes, no whole number of {kind}")
    return kind, shape if kind.itemsize == declared.itemsize else (size // kind.itemsize,)


def bytes_of(module: ir.Module, variable: ir.Variable, value: object, dtype: object = None) -> bytes:
    """A value as the bytes of a variable."""
    import numpy

    name, size = variable.name, layout.size_of_variable(variable)
    kind, shape = form_of(module, variable, dtype)
    if gpu.is_on_gpu(value):
        _refuse(module, variable, f"the value for `{name}` is on a GPU", "copy it to this machine first")
    view = gpu.host_view(value)  # the bytes of another library's array
    if view is not value or isinstance(value, (bytes, bytearray, memoryview)):
        if len(view) != size:
            _refuse(module, variable, f"`{name}` has {size} byte{'s' * (size != 1)}, the value {len(view)}")
        return bytes(view)
    has_type = isinstance(value, numpy.ndarray) and dtype is None
    array = _same_bits(module, variable, value, kind) if has_type else _converted(module, variable, value, kind)
    if array.shape != shape and (array.nbytes != size or min(array.ndim, len(shape)) > 1):
        message = f"`{name}` is {_spell(kind, shape)}, the value {_spell(array.dtype, array.shape)}"
        _refuse(module, variable, message, *[_DECLARED_AS_BYTES] * (variable.type.name == "b8" and not has_type))
    return array.tobytes()


def _same_bits(module: ir.Module, variable: ir.Variable, array: Array, kind: numpy.dtype[Any]) -> Array:
    """An array whose elements are what a variable has; others might be meant to be converted, or not."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    # Bits may be anything; and compilers declare every integer of C as unsigned.
    integers = array.dtype.kind in "iu" and kind.kind in "iu" and array.itemsize == kind.itemsize
    if array.dtype != kind and not integers and (variable.type.kind != "b" or array.dtype.hasobject):
        message = f"`{variable.name}` is `.{variable.type.name}`, the array holds {array.dtype}"
        _refuse(module, variable, message, f"pass `array.astype(numpy.{kind})`, or say `dtype=numpy.{kind}`")
    return array


def _converted(module: ir.Module, variable: ir.Variable, value: object, kind: numpy.dtype[Any]) -> Array:
    """Python numbers, or numbers of any type where `dtype` was said, as elements of that type; they must fit."""
    import numpy

    try:
        array = numpy.asarray(value)
        if kind.kind not in "iuf":
            return numpy.asarray(value, kind)
    except (TypeError, ValueError) as problem:
        reason = str(problem).split(". ")[0]
        _refuse(module, variable, f"the value for `{variable.name}` is not an array of {kind}: {reason}")
    if array.dtype.kind not in "biuf":
        _refuse(module, variable, f"the value for `{variable.name}` is not an array of numbers of up to 64 bits")
    if kind.kind == "f":
        with numpy.errstate(over="ignore"):
            found = array.astype(kind)
        wrong = numpy.isinf(found) & ~numpy.isinf(array.astype(float))
    elif array.dtype.kind == "f":
        helps = [_DECLARED_AS_BYTES] * (variable.type.name == "b8")
        _refuse(module, variable, f"`{variable.name}` takes integers, `.{variable.type.name}`, not floats", *helps)
    else:
        bits = kind.itemsize * 8
        found = array.astype(kind)
        low, high = -(1 << (bits - 1)), (1 << (bits - 1 if kind.kind == "i" else bits)) - 1
        wrong = (array < low) | (array > high)
    if wrong.any():
        _refuse(module, variable, f"{array[wrong].flat[0]} does not fit `{variable.name}`, which holds {kind}")
    return found


def _spell(kind: numpy.dtype[Any], shape: tuple[int, ...]) -> str:
    """`float32[4,4]`, or `float32` alone"""
    return f"{kind}{list(shape)}".replace(" ", "") if shape else str(kind)


def _refuse(module: ir.Module, variable: ir.Variable, message: str, *helps: str) -> NoReturn:
    found = error("bad-argument", message, module.span(variable), "the variable is declared here", helps=helps)
    raise KernelError([found])
