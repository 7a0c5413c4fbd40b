"""Accesses to memory that is not there, or not as the access needs it, and memory that runs out."""

from __future__ import annotations

from ptxlab.device.regions import Region
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.explain.snapshots import block_name, companion
from ptxlab.emulate.host.running import LaunchPlace
from ptxlab.report import Diagnostic
from ptxlab.report.reader import spell_option

_SPACES = {
    address_spaces.SHARED_SPACE: "shared",
    address_spaces.LOCAL_SPACE: "local",
    address_spaces.PARAMETER_SPACE: "parameter",
}


def explain_out_of_bounds(fault: FaultSnapshot) -> Diagnostic:
    """An address outside of all memory, or of that of its state space."""
    if (place := fault.launch.place) is not None:
        hidden = [one for one in place.hidden if one.base <= fault.address < one.base + one.size]
        if hidden:
            return _explain_hidden(fault, place, hidden[0])
    memory = fault.launch.host_memory
    if memory is not None and (freed := memory.freed_at(fault.address)) is not None:
        return _explain_freed(fault, freed)
    where, notes = _neighbourhood(fault)
    message = f"{fault.access} of {fault.size} bytes outside of {where}"
    label = f"{fault.who}, address {fault.address:#x}"
    return fault.error("out-of-bounds", message, label, notes=notes, helps=_dynamic_memory(fault))


def _explain_freed(fault: FaultSnapshot, region: Region) -> Diagnostic:
    """An access to memory that was freed."""
    message = f"{fault.access} of {fault.size} bytes in {region.name}, which is freed"
    return fault.error("use-after-free", message, _bytes_of(fault, region))


def _bytes_of(fault: FaultSnapshot, region: Region) -> str:
    return f"{fault.who}, bytes {fault.address - region.base}..{fault.address - region.base + fault.size}"


def _explain_hidden(fault: FaultSnapshot, place: LaunchPlace, region: Region) -> Diagnostic:
    """An access to memory of a node that was freed, or that the GPU may not access."""
    label = _bytes_of(fault, region)
    if region.is_mapped:
        message = f"{fault.access} of {fault.size} bytes in {region.name}, which GPU {place.device} may not access"
        helps = [f"call `cuMemSetAccess` for GPU {place.device} after `cuMemMap`"]
        return fault.error("missing-peer-access", message, label, helps=helps)
    if region.owner_device == place.device or region.is_freed:
        return _explain_freed(fault, region)
    own, other = place.device, region.owner_device
    return fault.error(
        "missing-peer-access",
        f"{fault.access} of {fault.size} bytes in {region.name}, to which GPU {own} has no peer access",
        label,
        helps=[
            f"call `cudaDeviceEnablePeerAccess({other}, 0)` on GPU {own}; "
            f"in Python, `node[{own}].enable_peer_access(node[{other}])`"
        ],
    )


def _dynamic_memory(fault: FaultSnapshot) -> list[str]:
    """Where shared memory was missed: that the launch says how large an `.extern` variable is, if there is one."""
    if fault.record.get("space") != address_spaces.SHARED_SPACE or _is_generic(
        fault.address, fault.record.get("space")
    ):
        return []
    variables = fault.launch.compiled.module.variables
    named = (one.name for one in variables if one.linkage == "extern" and one.state_space.startswith("shared"))
    option = spell_option("--shared BYTES", "shared=BYTES", "<<<grid, block, BYTES>>>")
    return [f"the launch says how large `{name}` is: {option}" for name in named][:1]


def explain_misaligned(fault: FaultSnapshot) -> Diagnostic:
    """An address that is not a multiple of what the access needs."""
    alignment = fault.record.get("alignment")
    smaller = ", or access smaller parts" if alignment == fault.size else ""
    return fault.error(
        "misaligned-access",
        f"{fault.access} of {fault.size} bytes at address {fault.address:#x}, not a multiple of {alignment}",
        helps=[f"align the address to {alignment} bytes{smaller}"],
    )


def explain_read_only(fault: FaultSnapshot) -> Diagnostic:
    """A write to constant memory, or to an argument that may only be read."""
    region = fault.launch.regions.at(fault.address)
    name = region.name if region else "constant memory"
    return fault.error("read-only-write", f"{fault.access} to {name}, which is read-only")


def explain_bad_multicast(fault: FaultSnapshot) -> Diagnostic:
    """A `multimem` instruction with an address that is not a multicast address, or one that ends too early."""
    return fault.error(
        "bad-multicast",
        f"`{fault.instruction.opcode.text}` at {fault.address:#x}, where no multicast address has {fault.value} bytes",
        helps=["pass `ptxlab.Multicast([array, …])`, with the array of each device, and stay within the arrays"],
    )


def explain_bad_free(fault: FaultSnapshot) -> Diagnostic:
    """A call of `free` with something that is not from `malloc`."""
    message = f"`free` of {fault.address:#x}, which `malloc` did not return or which is freed already"
    return fault.error("bad-free", message)


def explain_bad_copy_size(fault: FaultSnapshot) -> Diagnostic:
    """A number of bytes that a copy can't read or ignore; `limit` is the largest."""
    name, given, most = f"`{fault.instruction.opcode.text}`", fault.value, fault.limit
    message = f"{name} reads {given} bytes for a copy of {most}"
    help = f"give a source size of at most {most}: what is missing becomes zeros"
    if fault.effects.uses("bulk"):
        message = f"{name} ignores {given} bytes at one end, at most {most}"
        help = "start the copy at another address instead"
    return fault.error("bad-copy-size", message, helps=[help])


def explain_bad_size(fault: FaultSnapshot) -> Diagnostic:
    """A bulk copy, or a fill by the thread itself, of a number of bytes that it can't have."""
    unit = "16" if fault.effects.uses("bulk") else "8 up to 16777216"
    message = f"`{fault.instruction.opcode.text}` of {fault.value} bytes, not a multiple of {unit}"
    return fault.error("misaligned-access", message)


def explain_no_memory(fault: FaultSnapshot) -> Diagnostic:
    """This machine has no memory left, for the kernel itself or for more blocks than those that wait."""
    if not fault.value:
        return fault.error("out-of-memory", "this machine has no memory left for the kernel")
    launch = fault.launch
    done = f"{launch.finished.value} of {launch.total} blocks have ended"
    return fault.error(
        "out-of-memory",
        f"{fault.value} blocks wait for others, and this machine has no memory to start more",
        notes=[f"{done}; whether this is a hang is known only when all others have started"],
        helps=["use a smaller grid, or smaller blocks"],
    )


def _neighbourhood(fault: FaultSnapshot) -> tuple[str, list[str]]:
    """Which memory was missed, and by how far."""
    launch, address, space = fault.launch, fault.address, fault.record.get("space")
    if _is_generic(address, space):
        name = _SPACES.get(space, "shared")
        return f"{name} memory", [f"the address is a generic one of {name} memory: `cvta.to.{name}` converts it"]
    rank = (address >> address_spaces.RANK_SHIFT) - 1
    if space == address_spaces.CLUSTER_SPACE and rank >= launch.cluster_size:
        return "the cluster", [f"it has {launch.cluster_size} blocks, none of rank {rank}"]
    if space == address_spaces.CLUSTER_SPACE:
        owner = block_name(launch, companion(launch, fault.block, rank))
        return f"shared memory of {owner}", [f"the block has {launch.shared_size} bytes of shared memory"]
    if space == address_spaces.SHARED_SPACE and 0 <= rank < launch.cluster_size:
        owner = block_name(launch, companion(launch, fault.block, rank))
        return "shared memory of its own block", [f"the address is one in {owner}, which `.shared::cta` does not reach"]
    if space in _SPACES:
        limit = {address_spaces.SHARED_SPACE: launch.shared_size}.get(space)
        note = [f"the block has {limit} bytes of shared memory"] if limit is not None else []
        return f"{_SPACES[space]} memory", note
    if launch.multicast.replicas_of(address) != (address,):
        return "memory that it can access", ["it is a multicast address, which only `multimem` instructions access"]
    region = launch.regions.at(address)
    if region is None or address - region.base > 1 << 32:
        return "all memory the kernel has", [_low_address(fault)] if address < 4096 else []
    past = address - region.base
    if past < region.size:
        start = f"starts at byte {past} of it"
    else:
        start = f"starts {past - region.size} bytes past its end" if past > region.size else "starts at its end"
    return region.name, [f"{region.name} has {region.size} bytes; the access {start}"]


def _low_address(fault: FaultSnapshot) -> str:
    if any(access.space is None for access in fault.effects.accesses):
        return f"{fault.address:#x} is a null pointer, or an address in `.shared` or `.local` without `cvta`"
    return f"{fault.address:#x} is a null pointer"


def _is_generic(address: int, space: int) -> bool:
    """Whether an address that is used in a state space is a generic address in it."""
    windows = {
        address_spaces.SHARED_SPACE: address_spaces.SHARED_WINDOW,
        address_spaces.CLUSTER_SPACE: address_spaces.SHARED_WINDOW,
        address_spaces.LOCAL_SPACE: address_spaces.LOCAL_WINDOW,
    }
    return space in windows and windows[space] <= address < windows[space] + address_spaces.SHARED_WINDOW
