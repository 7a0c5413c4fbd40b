"""Which memory native code may access, a bit for each byte; how checked code asks, and how it allocates.

The bits are in a tree: 2**16 branches for the upper 16 of 48 bits of an address, each with 2**16 leaves, a leaf of 8 KB
for the bits of 64 KB. These functions are compiled unchecked; `checking` links them with checked code.
"""

from __future__ import annotations

from .functions import external, native
from .operations import (
    array,
    atomic_and,
    atomic_compare_exchange,
    atomic_load,
    atomic_or,
    cast,
    copy_bytes,
    fill_bytes,
    function_pointer,
)
from .types import Pointer, boolean, s32, u8, u32, u64

LEAF = 1 << 16  # bytes of memory whose bits are in one leaf
GUARD = 16  # bytes before and after what is allocated that must not be accessed; the size is kept in those before
TEXT = 1200  # bytes of a message
FARTHEST = 4096  # how far to search for memory before an address that is wrong

# What checked code calls.


@external(symbol="ptxlab.native.check")
def check(pointer: Pointer[u8], size: u64, site: Pointer[u8]) -> None:
    """Stop the process unless `size` bytes may be accessed; `site` says who does."""


@external(symbol="ptxlab.native.check_index")
def check_index(index: u64, length: u64, site: Pointer[u8]) -> None:
    """Stop the process unless an index is below the length of an array."""


@external(symbol="ptxlab.native.share")
def share(pointer: Pointer[u8], size: u64) -> None:
    """Let bytes be accessed, but not the `GUARD` bytes before and after them."""


@external(symbol="ptxlab.native.share_constant")
def share_constant(pointer: Pointer[u8], size: u64) -> None:
    """Let bytes be accessed, whatever is beside them."""


@external(symbol="ptxlab.native.unshare")
def unshare(pointer: Pointer[u8], size: u64) -> None:
    """Let bytes be accessed no longer."""


@external(symbol="ptxlab.native.share_table")
def share_table(pointer: Pointer[u8], size: u64, is_shared: Pointer[u8]) -> None:
    """Let a constant table be accessed, once."""


# What these functions need.


@external(symbol="ptxlab.native.branches")
def branches() -> None:
    """The first level of the tree: this is data, and only its address is used."""


@external
def calloc(count: u64, size: u64) -> Pointer[u8]:
    raise NotImplementedError


@external
def free(memory: Pointer[u8]) -> None: ...


@external
def write(file: s32, text: Pointer[u8], size: u64) -> u64:
    raise NotImplementedError


@external
def abort() -> None: ...


@native
def leaf_of(address: u64) -> Pointer[u8]:
    """The leaf for an address; null if there is none."""
    branch: Pointer[Pointer[Pointer[u8]]] = cast(Pointer[Pointer[Pointer[u8]]], function_pointer(branches))
    leaves = atomic_load(branch + (address >> 32 & 0xFFFF))
    if cast(u64, leaves) == 0:
        return cast(Pointer[u8], 0)
    return atomic_load(leaves + (address >> 16 & 0xFFFF))


@native
def made_leaf(address: u64) -> Pointer[u8]:
    """The leaf for an address, a new one if there is none."""
    branch: Pointer[Pointer[Pointer[u8]]] = cast(Pointer[Pointer[Pointer[u8]]], function_pointer(branches))
    branch = branch + (address >> 32 & 0xFFFF)
    if cast(u64, atomic_load(branch)) == 0:
        fresh = calloc(1 << 16, 8)
        if cast(u64, atomic_compare_exchange(branch, cast(Pointer[Pointer[u8]], 0), cast(Pointer[Pointer[u8]], fresh))):
            free(fresh)
    leaf = atomic_load(branch) + (address >> 16 & 0xFFFF)
    if cast(u64, atomic_load(leaf)) == 0:
        fresh = calloc(LEAF // 8, 1)
        if cast(u64, atomic_compare_exchange(leaf, cast(Pointer[u8], 0), fresh)):
            free(fresh)
    return atomic_load(leaf)


@native
def set_bits(address: u64, size: u64, is_valid: boolean) -> None:
    """Note of bytes whether they may be accessed."""
    at: u64 = address
    end: u64 = address + size
    while at < end:
        bits = made_leaf(at) + (at % LEAF // 8)
        if at % 8 == 0 and end - at >= 8:
            whole: u64 = min((end - at) // 8, (LEAF - at % LEAF) // 8)
            fill_bytes(bits, u8(255) if is_valid else u8(0), whole)
            at += whole * 8
            continue
        count: u64 = min(8 - at % 8, end - at)
        mask: u8 = u8(((u32(1) << count) - 1) << at % 8)
        if is_valid:
            atomic_or(bits, mask)
        else:
            atomic_and(bits, ~mask)
        at += count


@native
def is_valid(address: u64, size: u64) -> boolean:
    """Whether all of some bytes may be accessed."""
    at: u64 = address
    end: u64 = address + size
    while at < end:
        leaf = leaf_of(at)
        if cast(u64, leaf) == 0:
            return False
        count: u64 = min(8 - at % 8, end - at)
        mask: u32 = ((u32(1) << count) - 1) << at % 8
        if u32(leaf[at % LEAF // 8]) & mask != mask:
            return False
        at += count
    return True


@native
def check_access(pointer: Pointer[u8], size: u64, site: Pointer[u8]) -> None:
    if not is_valid(cast(u64, pointer), size):
        report(cast(u64, pointer), size, site)


@native
def check_element(index: u64, length: u64, site: Pointer[u8]) -> None:
    if index >= length:
        buffer = array(u8, TEXT)
        used: u32 = append_words(buffer, 0, OUT_OF_BOUNDS)  # type: ignore[arg-type]
        used = append_text(buffer, used, site)
        used = append_words(buffer, used, INDEX)  # type: ignore[arg-type]
        used = append_number(buffer, used, index, 10)
        used = append_words(buffer, used, OF)  # type: ignore[arg-type]
        used = append_number(buffer, used, length, 10)
        stop(buffer, used)


@native
def share_bytes(pointer: Pointer[u8], size: u64) -> None:
    set_bits(cast(u64, pointer) - GUARD, GUARD, False)
    set_bits(cast(u64, pointer), size, True)
    set_bits(cast(u64, pointer) + size, GUARD, False)


@native
def share_host_bytes(pointer: Pointer[u8], size: u64) -> None:
    """Let bytes be accessed, whatever is beside them."""
    set_bits(cast(u64, pointer), size, True)


@native
def unshare_bytes(pointer: Pointer[u8], size: u64) -> None:
    set_bits(cast(u64, pointer), size, False)


@native
def share_table_once(pointer: Pointer[u8], size: u64, is_shared: Pointer[u8]) -> None:
    if is_shared[0] == 0:
        set_bits(cast(u64, pointer), size, True)
        is_shared[0] = 1


# Memory that native code allocates: `calloc` of checked code is `checked_calloc`.


@native
def checked_calloc(count: u64, size: u64) -> Pointer[u8]:
    bytes: u64 = count * size
    whole = calloc(bytes + 2 * GUARD, 1)
    if cast(u64, whole) == 0:
        return whole
    kept = cast(Pointer[u64], whole)
    kept[0] = bytes
    share_bytes(whole + GUARD, bytes)
    return whole + GUARD


@native
def checked_malloc(size: u64) -> Pointer[u8]:
    return checked_calloc(1, size)


@native
def checked_free(memory: Pointer[u8]) -> None:
    if cast(u64, memory) != 0:
        kept = cast(Pointer[u64], memory - GUARD)
        unshare_bytes(memory, kept[0])
        free(memory - GUARD)


@native
def checked_realloc(memory: Pointer[u8], size: u64) -> Pointer[u8]:
    made = checked_calloc(1, size)
    if cast(u64, made) != 0 and cast(u64, memory) != 0:
        kept = cast(Pointer[u64], memory - GUARD)
        copy_bytes(made, memory, min(kept[0], size))
        checked_free(memory)
    return made


# Saying what is wrong.


@native
def append_text(buffer: Pointer[u8], used: u32, text: Pointer[u8]) -> u32:
    """Add a text that ends with 0; how much of the buffer is used then."""
    at: u32 = used
    index: u32 = 0
    while text[index] != 0 and at < 1000:
        buffer[at] = text[index]
        at += 1
        index += 1
    return at


@native
def append_number(buffer: Pointer[u8], used: u32, number: u64, base: u64) -> u32:
    """Add a number."""
    digits = array(u8, 32)
    count: u32 = 0
    rest: u64 = number
    while rest != 0 or count == 0:
        digit: u8 = u8(rest % base)
        digits[count] = digit + (48 if digit < 10 else 87)
        rest = rest // base
        count += 1
    at: u32 = used
    while count > 0:
        count -= 1
        buffer[at] = digits[count]
        at += 1
    return at


OUT_OF_BOUNDS = tuple(b"ptxlab: native code is out of bounds: \0")
AT = tuple(b", at 0x\0")
INDEX = tuple(b", is \0")
OF = tuple(b", and the length \0")
BEFORE = tuple(b", \0")
PAST = tuple(b" bytes past the end of valid memory\0")
NO_MEMORY = tuple(b"; no valid memory is near before it\0")


@native
def append_words(buffer: Pointer[u8], used: u32, words: Pointer[u32]) -> u32:
    """Add a text whose characters are in a table."""
    at: u32 = used
    while words[at - used] != 0:
        buffer[at] = u8(words[at - used])
        at += 1
    return at


@native
def report(address: u64, size: u64, site: Pointer[u8]) -> None:
    """Write what is wrong to stderr, and stop the process."""
    buffer = array(u8, TEXT)
    used: u32 = append_words(buffer, 0, OUT_OF_BOUNDS)  # type: ignore[arg-type]
    used = append_text(buffer, used, site)
    used = append_words(buffer, used, AT)  # type: ignore[arg-type]
    used = append_number(buffer, used, address, 16)
    wrong: u64 = address
    while is_valid(wrong, 1) and wrong < address + size:
        wrong += 1
    back: u64 = 1
    while back < FARTHEST and not is_valid(wrong - back, 1):
        back += 1
    if back < FARTHEST:
        used = append_words(buffer, used, BEFORE)  # type: ignore[arg-type]
        used = append_number(buffer, used, back - 1, 10)
        used = append_words(buffer, used, PAST)  # type: ignore[arg-type]
    else:
        used = append_words(buffer, used, NO_MEMORY)  # type: ignore[arg-type]
    stop(buffer, used)


@native
def stop(buffer: Pointer[u8], used: u32) -> None:
    """Write a line to stderr, and stop the process."""
    buffer[used] = 10
    write(2, buffer, u64(used) + 1)
    abort()
