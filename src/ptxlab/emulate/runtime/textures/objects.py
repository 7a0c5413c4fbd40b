"""What the handles of textures, surfaces and samplers refer to."""

from __future__ import annotations

from ptxlab.device.textures import HANDLE_BYTES, HANDLES
from ptxlab.emulate.abi.faults import BAD_TEXTURE, TextureReason
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.textures import NOTHING, TextureObject
from ptxlab.emulate.runtime.memory.memory import fail_because
from ptxlab.native import Pointer, cast, native, u32, u64


@native
def object_of(thread: Pointer[Thread], handle: u64) -> Pointer[TextureObject]:
    """What a handle refers to, or null where it is not a handle."""
    number: u64 = (handle - HANDLES) // HANDLE_BYTES
    if handle < HANDLES or handle % HANDLE_BYTES != 0 or number >= u64(thread.worker.memory.texture_count):
        return cast(Pointer[TextureObject], 0)
    return thread.worker.memory.textures + number


@native
def find_object(thread: Pointer[Thread], handle: u64, kind: u32, instruction: u32) -> Pointer[TextureObject]:
    """The texture, surface or sampler of a handle; null, with the fault noted, if it is something else."""
    found = object_of(thread, handle)
    if cast(u64, found) == 0:
        fail_texture(thread, TextureReason.NOT_A_HANDLE, instruction, handle, 0, u64(kind))
        return found
    if found.kind == NOTHING:
        fail_texture(thread, TextureReason.UNBOUND, instruction, handle, 0, u64(kind))
        return cast(Pointer[TextureObject], 0)
    if found.kind != kind:
        fail_texture(thread, TextureReason.OTHER_KIND, instruction, handle, u64(found.kind), u64(kind))
        return cast(Pointer[TextureObject], 0)
    return found


@native
def fail_texture(thread: Pointer[Thread], reason: u32, instruction: u32, handle: u64, value: u64, limit: u64) -> None:
    """Note what is wrong with a handle, or with what it refers to."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.address = handle
        thread.worker.fault.limit = limit
    fail_because(thread, BAD_TEXTURE, reason, instruction, value)


@native
def is_handle_of(thread: Pointer[Thread], handle: u64, kind: u32) -> u32:
    """Whether an address is that of a variable of that kind; the handle of an argument is not an address."""
    found = object_of(thread, handle)
    if cast(u64, found) == 0 or (handle - HANDLES) // HANDLE_BYTES >= u64(thread.worker.memory.texture_variables):
        return 0
    return u32(found.kind == kind)


CALLED = (is_handle_of,)
