"""Matrix descriptors in words: where a matrix in shared memory starts, LBO, SBO, swizzle and base offset."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.emulate.explain.encoded import BitField, Explanation
from ptxlab.isa.targets import target_named
from ptxlab.isa.units.descriptor import (
    ABSOLUTE,
    CHUNK,
    RESERVED,
    TENSOR_MODES,
    TENSOR_RESERVED,
    VERSION,
    Descriptor,
)

TARGETS = {"sm_90a": False, "sm_100a": True, "sm_103a": True}  # whether its descriptors are those of `tcgen05`
SPANS = {"32B": 32, "64B": 64, "128B": 128, "128B/32B": 128}  # bytes of a row of a swizzle
LINE = 128
EIGHT = 8


def explain_matrix(bits: int, target: str | None) -> Explanation:
    """What 64 bits say to `wgmma` or to `tcgen05`."""
    if target is not None and target not in TARGETS:
        raise ValueError(f"target {target!r}: expected one of {', '.join(TARGETS)}")
    assumed = ""
    if target is None:
        target = "sm_100a" if bits & VERSION else "sm_90a"
        which = "set" if bits & VERSION else "not set"
        assumed = f"read for {target}, because bit 46 is {which}: descriptors of tcgen05 have it, those of wgmma do not"
    is_tensor = TARGETS[target]
    said = Descriptor.decode_for_tcgen05(bits) if is_tensor else Descriptor.decode(bits)
    return Explanation(
        "descriptor",
        f"matrix descriptor of {'tcgen05' if is_tensor else 'wgmma'} ({target}): {bits:#018x}",
        assumed,
        tuple(_fields(bits, said, is_tensor)),
        tuple(_violations(bits, said, target)),
        tuple(_notes(said, is_tensor)),
    )


def _fields(bits: int, said: Descriptor, is_tensor: bool) -> Iterator[BitField]:
    def field(name: str, lowest: int, highest: int, says: str) -> BitField:
        return BitField(name, lowest, highest, bits >> lowest & (1 << highest - lowest + 1) - 1, says)

    leading, stride = _offsets(said, is_tensor)
    if is_tensor and bits & ABSOLUTE:
        leading = f"an absolute address, {said.leading:#x}, and not an offset"
    yield field("start address", 0, 13, f"{said.start:#x} in shared memory")
    yield field("LBO", 16, 29, leading)
    yield field("SBO", 32, 45, stride)
    if is_tensor:
        yield field("constant", 46, 48, "1 in all descriptors of tcgen05")
    yield field("base offset", 49, 51, _base(said))
    if is_tensor:
        yield field("LBO mode", 52, 52, "LBO is an address" if bits & ABSOLUTE else "LBO is an offset")
        yield field("constant", 53, 60, "0 in all descriptors of tcgen05")
    yield field("swizzle", 61 if is_tensor else 62, 63, _swizzle(said))


def _offsets(said: Descriptor, is_tensor: bool) -> tuple[str, str]:
    """What LBO and SBO lead to."""
    lbo, sbo = f"{said.leading} bytes", f"{said.stride} bytes"
    if said.swizzle not in SPANS:
        return f"{lbo} from a core matrix to the next along k", f"{sbo} from a core matrix to the next along m or n"
    span = SPANS[said.swizzle]
    lines = 4 if said.swizzle == "128B/32B" else EIGHT
    if said.swizzle == "128B/32B":
        return f"{lbo} from {span} bytes along m or n to the next", f"{sbo} from {lines} of k to the next {lines}"
    return (
        f"{lbo}: MN-major, from {span} bytes along m or n to the next; K-major, {_use(is_tensor)}",
        f"{sbo}: K-major, from {EIGHT} rows to the next {EIGHT}; MN-major, from {EIGHT} of k to the next {EIGHT}",
    )


def _use(is_tensor: bool) -> str:
    """What a K-major matrix with a swizzle uses LBO for: 32 bytes of k are in one row of it, 48 may be in two."""
    return "only where K is 96" if is_tensor else "not used"


def _base(said: Descriptor) -> str:
    if said.swizzle not in SPANS:
        return "only of a swizzle"
    repeats = _repeats(said)
    if said.base_offset == 0:
        return f"the pattern of the swizzle starts at a multiple of {repeats} bytes"
    return f"the pattern of the swizzle starts {said.base_offset * LINE} bytes after a multiple of {EIGHT * LINE}"


def _repeats(said: Descriptor) -> int:
    """The bytes after which the pattern of a swizzle repeats."""
    return 512 if said.swizzle == "128B/32B" else EIGHT * SPANS[said.swizzle]


def _swizzle(said: Descriptor) -> str:
    match said.swizzle:
        case "none":
            return "none"
        case "128B/32B":
            return "128B in pieces of 32 bytes: only of MN-major tf32"
        case "?":
            return "there is no such mode"
    return f"{said.swizzle}: pieces of {CHUNK} bytes in rows of {SPANS[said.swizzle]}"


def _violations(bits: int, said: Descriptor, target: str) -> Iterator[str]:
    is_tensor = TARGETS[target]
    reserved = bits & (TENSOR_RESERVED if is_tensor else RESERVED)
    if is_tensor and not bits & VERSION:
        yield "bits 46 to 48 must be 1, the constant of descriptors of tcgen05: bit 46 is missing"
    if not is_tensor and bits & VERSION:
        yield "bit 46 must be 0: descriptors of tcgen05 (sm_100a) have it, those of wgmma do not"
        reserved &= ~VERSION
    if reserved:
        yield f"{name_bits(reserved)} must be 0: no field is there"
    if is_tensor and bits & ABSOLUTE and target != "sm_103a":
        yield "bit 52 must be 0: an LBO that is an address is only of sm_103a"
    if said.swizzle == "?":
        modes = ", ".join(map(str, TENSOR_MODES.values()))
        yield f"the swizzle mode {bits >> 61} is reserved: expected one of {modes}"
    most = target_named(target).shared_memory
    if said.start >= most:
        yield f"the start address {said.start:#x} is outside of shared memory: a block has at most {most} bytes"
    yield from _alignment(said)


def _alignment(said: Descriptor) -> Iterator[str]:
    """Whether the matrix starts in the first row of its swizzle's pattern."""
    if said.swizzle not in SPANS:
        if said.base_offset:
            yield f"the base offset is {said.base_offset} without a swizzle: it must be 0"
        return
    repeats = _repeats(said)
    lines = repeats // LINE
    beyond = (said.start // LINE - said.base_offset) % lines
    if beyond:
        yield (
            f"the start address {said.start:#x} is {beyond * LINE} bytes into the pattern of the swizzle, which has "
            f"{repeats}: align the tile to {repeats} bytes, or let the base offset be {said.start // LINE % EIGHT} if "
            "the pattern starts there"
        )


def _notes(said: Descriptor, is_tensor: bool) -> Iterator[str]:
    if said.stride == 0:
        yield "SBO is 0: every eight rows are the same bytes"
    if said.leading == 0 and said.swizzle == "none":
        yield "LBO is 0: all 16 bytes of a row are the same"
    if said.swizzle in ("32B", "64B", "128B") and said.leading not in (0, CHUNK):
        but = ", unless K is 96" if is_tensor else ""
        yield f"LBO is {said.leading}: a K-major matrix with a swizzle does not use it{but}"


def name_bits(mask: int) -> str:
    """`bit 46`, or `bits 14-15 and 60`."""
    spans: list[list[int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            if spans and spans[-1][-1] == bit - 1:
                spans[-1].append(bit)
            else:
                spans.append([bit])
    names = [str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans]
    if mask.bit_count() == 1:
        return f"bit {names[0]}"
    return f"bits {', '.join(names[:-1])} and {names[-1]}" if names[1:] else f"bits {names[0]}"
