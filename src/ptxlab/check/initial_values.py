"""Initial values of variables: whether one fits its declaration."""

from ptxlab import ir

_BYTES = frozenset(0xFF << shift for shift in range(0, 64, 8))


def misfit(value: ir.Initializer, variable: ir.Variable, spaces: dict[str, str]) -> str | None:
    """What is wrong with an initial value, or None; `spaces` says where the variables of the module are."""
    if variable.type.kind == "o":
        return _wrong_properties(value, variable.type.name)
    if variable.type.name == "f16":
        return "cannot be given: ptxas takes none for `.f16`"
    return _misfit(value, variable, spaces, 0)


_SIZES = "width height depth channel_data_type channel_order array_size"
_SAMPLING = "filter_mode addr_mode_0 addr_mode_1 addr_mode_2"
_PROPERTIES = {
    "texref": f"{_SIZES} {_SAMPLING} normalized_coords num_mipmap_levels num_samples".split(),
    "samplerref": f"{_SAMPLING} force_unnormalized_coords".split(),
    "surfref": _SIZES.split(),
}
_WORDS = frozenset("nearest linear wrap mirror clamp_ogl clamp_to_edge clamp_to_border".split())


def _wrong_properties(value: ir.Initializer, type: str) -> str | None:
    if not isinstance(value, ir.InitializerList):
        return "is not a list of properties in braces"
    for part in value.elements:
        if not isinstance(part, ir.Field):
            return "has a value without the name of its property"
        if part.name not in _PROPERTIES[type]:
            return f"has the property `{part.name}`, which `.{type}` does not have"
        if isinstance(part.value, str) and part.value not in _WORDS:
            return f"sets `{part.name}` to `{part.value}`, which is not a value for it"
    return None


def _misfit(value: ir.Initializer, variable: ir.Variable, spaces: dict[str, str], depth: int) -> str | None:
    levels = len(variable.dimensions) + (variable.vector > 1)
    if isinstance(value, ir.InitializerList):
        if depth >= levels:
            return "has braces where one value belongs"
        extent = variable.dimensions[depth] if depth < len(variable.dimensions) else variable.vector
        is_open = extent is None or (extent == 0 and depth == 0)
        if not is_open and len(value.elements) > (extent or 0):
            return f"has {len(value.elements)} elements for an extent of {extent}"
        if depth == len(variable.dimensions) and len(value.elements) != variable.vector:
            return f"has {len(value.elements)} elements for a vector of {variable.vector}"
        return next((wrong for part in value.elements if (wrong := _misfit(part, variable, spaces, depth + 1))), None)
    if depth < levels:
        return "has one value for an array"
    type = variable.type
    if isinstance(value, ir.Immediate):
        if type.kind == "b" or (value.is_float == (type.kind == "f") and type.lanes == 1):
            return None  # bits take constants of both kinds
        kind = "a floating-point constant" if value.is_float else "an integer"
        return f"is {kind}, and `.{type.name}` does not take it"
    if isinstance(value, ir.SymbolAddress):
        return _wrong_address(value, type.name, spaces)
    if isinstance(value, ir.MaskedConstant) and type.kind == "f":
        return f"is a byte of an integer, and `.{type.name}` does not take it"
    return None


def _wrong_address(value: ir.SymbolAddress, type: str, spaces: dict[str, str]) -> str | None:
    if not value.resolved:
        return f"names `{value.name}`, which is not declared"
    space = spaces.get(value.name, "global")  # functions are in none
    if space not in ("global", "const"):
        return f"is the address of `{value.name}` in `.{space}`, which is not known before the kernel runs"
    if value.mask is not None and value.mask not in _BYTES:
        return f"has the mask {value.mask:#x}, which is not one byte: `0xff`, `0xff00` and so on"
    if type not in (("u32", "u64") if value.mask is None else ("u8", "u32", "u64")):
        wanted = "`.u64`" if value.mask is None else "`.u8`"
        return f"is an address, which belongs into {wanted}, not `.{type}`"
    return None
