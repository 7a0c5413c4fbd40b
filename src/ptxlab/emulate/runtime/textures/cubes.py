"""Cube maps: from a direction to a face and coordinates on it, as an H200 does (measured)."""

from __future__ import annotations

from ptxlab.emulate.abi.textures import TextureLookup
from ptxlab.native import Pointer, bits_float, f32, f64, float_bits, native, s64, u32
from ptxlab.numbers.approximate import reciprocal

_MAGNITUDE = 0x7FFFFFFF


@native
def project(lookup: Pointer[TextureLookup], direction: Pointer[u32]) -> u32:
    """The face that a direction points to; its first two coordinates become those on the face, from 0 to 1.

    ptxas divides by the largest coordinate with an approximate reciprocal; of equal ones z counts, then y.
    """
    largest: u32 = 0
    for axis in range(3):
        largest = max(largest, lookup.coordinates[axis] & _MAGNITUDE)
    factor: f32 = bits_float(f32, reciprocal(largest, True))
    for axis in range(3):
        direction[axis] = float_bits(f32, bits_float(f32, lookup.coordinates[axis]) * factor)
        if direction[axis] & _MAGNITUDE > 0x7F800000:
            direction[axis] = 0
    x: u32 = direction[0]
    y: u32 = direction[1]
    z: u32 = direction[2]
    sign: u32 = 0x80000000
    if z & _MAGNITUDE >= max(x & _MAGNITUDE, y & _MAGNITUDE):
        return _project(direction, 4 + (z >> 31), x ^ (z & sign), y ^ sign)
    if y & _MAGNITUDE >= x & _MAGNITUDE:
        return _project(direction, 2 + (y >> 31), x, z ^ (y & sign))
    return _project(direction, x >> 31, z ^ sign ^ (x & sign), y ^ sign)


@native
def _project(direction: Pointer[u32], face: u32, column: u32, row: u32) -> u32:
    """Coordinates from -1 to 1 as such from 0 to 1."""
    direction[0] = _from_zero(column)
    direction[1] = _from_zero(row)
    return face


@native
def _from_zero(coordinate: u32) -> u32:
    """A coordinate from -1 to 1 as one from 0 to 1, rounded down to 24 fraction bits."""
    value: s64 = s64((f64(bits_float(f32, coordinate)) + 1.0) * 8388608.0)
    return float_bits(f32, f32(f64(value) / 16777216.0))


@native
def neighbor(face: s64, column: s64, row: s64, size: s64) -> s64:
    """The texel of another face next to a place outside of a face: its face, row and column, 20 bits each.

    A place is counted in half texels from the middle of the face; `size` is the third coordinate there.
    """
    across: s64 = 2 * column + 1 - size
    down: s64 = 2 * row + 1 - size
    x: s64 = 0
    y: s64 = 0
    z: s64 = 0
    sign: s64 = 1 - 2 * (face & 1)
    if face >> 1 == 0:
        x = size * sign
        y = -down
        z = -across * sign
    elif face >> 1 == 1:
        x = across
        y = size * sign
        z = down * sign
    else:
        x = across * sign
        y = -down
        z = size * sign
    if abs(z) >= max(abs(x), abs(y)):
        return _texel_on(4 + s64(z < 0), x if z > 0 else -x, -y, abs(z), size)
    if abs(y) >= abs(x):
        return _texel_on(2 + s64(y < 0), x, z if y > 0 else -z, abs(y), size)
    return _texel_on(s64(x < 0), -z if x > 0 else z, -y, abs(x), size)


@native
def _texel_on(face: s64, across: s64, down: s64, distance: s64, size: s64) -> s64:
    column: s64 = min((across + distance) * size // (2 * distance), size - 1)
    row: s64 = min((down + distance) * size // (2 * distance), size - 1)
    return face << 40 | row << 20 | column


@native
def spread_corner(weights: Pointer[u32], columns: u32, rows: u32) -> None:
    """Where three faces meet there is no fourth texel: its weight goes to the others, a third each.

    Bits say which of two columns and of two rows are outside of the face; the texel inside takes the remainder.
    """
    if columns == 0 or rows == 0:
        return
    missing: u32 = (columns >> 1) + (rows >> 1) * 2
    weight: u32 = weights[missing] & 0x1FF
    third: u32 = weight // 3
    weights[missing ^ 1] += third
    weights[missing ^ 2] += third
    weights[missing ^ 3] += weight - 2 * third
    weights[missing] = 0
