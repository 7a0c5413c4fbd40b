"""An array that grows: `Growable[u32]` as a field of a structure, all zeros when it is empty.

    item = append(thread.copies)  # one more, all zeros; null if there is no memory for it
    thread.copies.items[0]        # the first of `thread.copies.count`

Items move when the array grows: an address of one is good until the next `append`, `reserve` or `resize`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from .allocation import free, realloc
from .functions import native
from .operations import cast, fill_bytes
from .types import Pointer, boolean, size_of, struct, u8, u32, u64

T = TypeVar("T")

LEAST = 8


@struct
class Growable(Generic[T]):
    """`count` items, and memory for `capacity`."""

    items: Pointer[T]
    count: u32
    capacity: u32


@native
def resize(array: Pointer[Growable[T]], capacity: u32) -> boolean:
    """Change the capacity, which is not below the count; false if there is no memory for it."""
    memory = realloc(cast(Pointer[u8], array.items), u64(capacity) * size_of(T))  # type: ignore[misc]
    if cast(u64, memory) == 0:
        return False
    array.items = cast(Pointer[T], memory)
    array.capacity = capacity
    return True


@native(inline=True)
def reserve(array: Pointer[Growable[T]], count: u32) -> boolean:
    """Make the capacity at least `count`, and more by half when it grows; false if there is no memory for it."""
    return count <= array.capacity or resize(array, count + count // 2 + LEAST)


@native(inline=True)
def append(array: Pointer[Growable[T]]) -> Pointer[T]:
    """The address of one more item, all zeros; null if there is no memory for it."""
    if not reserve(array, array.count + 1):
        return cast(Pointer[T], 0)
    item: Pointer[T] = array.items + array.count
    array.count += 1
    fill_bytes(cast(Pointer[u8], item), 0, size_of(T))  # type: ignore[misc]
    return item


@native(inline=True)
def free_items(array: Pointer[Growable[T]]) -> None:
    """Free the memory; the array is empty."""
    free(cast(Pointer[u8], array.items))
    array.items = cast(Pointer[T], 0)
    array.count = 0
    array.capacity = 0
