"""What went wrong, in words: on the line of the instruction, with the thread, the address and the memory near it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.abi import state
from ptxlab.emulate.explain.barrier_faults import explain_bad_barrier, explain_count
from ptxlab.emulate.explain.findings import explain_findings, name_bytes
from ptxlab.emulate.explain.hangs import explain_divergence, explain_hang
from ptxlab.emulate.explain.snapshots import WAITING, block_name, companion, snapshot_of, thread_name
from ptxlab.emulate.explain.stops import explain_stop
from ptxlab.emulate.explain.tensor_faults import (
    explain_address,
    explain_allocation,
    explain_description,
    explain_map,
    explain_use_after_free,
)
from ptxlab.emulate.runtime.tensor_memory.allocation import FREED
from ptxlab.isa.descriptor import CHUNK, Descriptor
from ptxlab.report import Diagnostic, Label, Span, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import Launch
    from ptxlab.emulate.host.worker import Worker

_DAMAGE = ("overwritten-mbarrier", "reinitialised-mbarrier")  # which explain the races of the same instruction
_ACCESS = {state.LOAD: "read", state.STORE: "write", state.ATOMIC: "atomic operation"}
_SPACES = {state.SHARED_SPACE: "shared", state.LOCAL_SPACE: "local", state.PARAMETER_SPACE: "parameter"}


def explain(launch: Launch, outcome: str | None, timeout: float | None) -> list[Diagnostic]:
    """Everything that a launch found wrong."""
    faulty = [worker for worker in launch.workers if worker.fault.get("kind")]
    faulty.sort(key=lambda worker: worker.fault.get("block"))  # one cause, one diagnostic: that of the first block
    found = [_explain_fault(launch, worker) for worker in faulty[:1]]
    if not found and outcome is not None:
        found = [explain_stop(launch, outcome, timeout)]
    found += _explain_late(launch)
    codes = {diagnostic.code for diagnostic in found}
    damaged = {diagnostic.labels[0].span for diagnostic in found if diagnostic.code in _DAMAGE and diagnostic.labels}
    races = (race for race in explain_findings(launch) if not _is_told(race, codes, damaged))
    return [*found, *races, *_explain_printf(launch)]


def _explain_late(launch: Launch) -> list[Diagnostic]:
    """The first access to shared memory of a block that had exited."""
    late = [worker.late for worker in launch.workers if worker.late.get("kind")]
    if not late:
        return []
    first = min(late, key=lambda fault: fault.get("block"))
    size, block = first.get("size"), first.get("block")
    bytes = name_bytes(launch, state.CLUSTER_SPACE, first.get("address"), size, block)
    return [
        error(
            "exited-block",
            f"{_ACCESS[first.get('access')]} of {size} bytes in shared memory of a block that has exited",
            launch.span_of(first.get("instruction")),
            f"{thread_name(launch, block, first.get('thread'))}, {bytes}",
            helps=["let all threads of the cluster synchronize at `barrier.cluster` before they exit"],
        )
    ]


def _explain_printf(launch: Launch) -> list[Diagnostic]:
    """What is wrong with calls of `printf`."""
    found = []
    for remark, call in launch.services.remarks.values():
        tell = error if remark.level == "error" else warning
        notes = [f"the format is {json.dumps(call.pattern)}"] if call.pattern else []
        who = thread_name(launch, call.block, call.thread)
        found.append(tell("bad-printf", remark.message, launch.span_of(call.instruction), who, notes=notes))
    return found


def _is_told(race: Diagnostic, codes: set[str], damaged: set[Span]) -> bool:
    """Whether a finding has the cause of a fault that is reported already."""
    if race.code in ("use-after-free", "exited-block"):
        return race.code in codes
    return not damaged.isdisjoint(label.span for label in race.labels)


def _explain_fault(launch: Launch, worker: Worker) -> Diagnostic:
    fault = worker.fault
    kind, address, size, extra = (fault.get(name) for name in ("kind", "address", "size", "extra"))
    _, instruction = launch.compiled.places[fault.get("instruction")]
    module = launch.compiled.module
    span = module.span(instruction)
    who = thread_name(launch, fault.get("block"), fault.get("thread"))
    action = _ACCESS[fault.get("access")]

    def told(
        code: str, message: str, label: str, notes: list[str] | None = None, helps: list[str] | None = None
    ) -> Diagnostic:
        return error(code, message, span, label, notes=notes or [], helps=helps or [])

    match kind:
        case state.OUT_OF_BOUNDS:
            where, notes = _neighbourhood(launch, address, extra, fault.get("block"))
            return told("out-of-bounds", f"{action} of {size} bytes outside of {where}",
                        f"{who}, address {address:#x}", notes)  # fmt: skip
        case state.MISALIGNED:
            alignment = extra >> 8
            smaller = ", or access smaller parts" if alignment == size else ""
            where = f"at address {address:#x}, not a multiple of {alignment}"
            return told("misaligned", f"{action} of {size} bytes {where}", who,
                        helps=[f"align the address to {alignment} bytes{smaller}"])  # fmt: skip
        case state.READ_ONLY:
            region = launch.regions.at(address)
            return told(
                "read-only-write",
                f"{action} to {region.name if region else 'constant memory'}, which is read-only",
                who,
            )
        case state.STACK_OVERFLOW:
            return told("stack-overflow", f"the stack of a thread is full after {extra} calls", who,
                        helps=["bound the recursion, or turn it into a loop"])  # fmt: skip
        case state.TRAP:
            return told("trap", "the kernel stops itself with `trap`", who)
        case state.BAD_CALL if extra:
            return _mismatch(module, instruction, extra - 1, who)
        case state.BAD_CALL:
            return told("bad-call", f"a call of {address:#x}, which is not a function", who)
        case state.BAD_BRANCH:
            return told("bad-branch", f"`brx.idx` with index {extra}, beyond its list of targets", who)
        case state.BARRIER_COUNT:
            return told("bad-barrier", explain_count(extra, size), who)
        case state.BAD_BARRIER:
            snapshot = snapshot_of(launch, worker)
            assert snapshot is not None
            return explain_bad_barrier(launch, snapshot, fault, who)
        case state.BARRIER_DIVERGENCE:
            snapshot = snapshot_of(launch, worker)
            assert snapshot is not None
            number = fault.get("instruction")
            opcode = launch.compiled.places[number][1].opcode
            status = state.AT_BARRIER if opcode.mnemonic in ("bar", "barrier") else state.MEETING
            if "cluster" in opcode.modifiers:
                status = state.AT_CLUSTER
            culprit = replace(snapshot.threads[fault.get("thread")], status=status, barrier=extra, instruction=number)
            lanes = [thread for thread in snapshot.threads if thread.warp == culprit.warp and thread.status in WAITING]
            return explain_divergence(launch, snapshot, [culprit, *lanes], culprit)
        case state.BAD_MEMBERMASK:
            lane = fault.get("thread") % 32
            message = f"the mask {extra:#010x} of lane {lane} does not include the lane itself"
            return told("bad-membermask", message, who, helps=[f"set bit {lane} of the mask"])  # fmt: skip
        case state.BAD_FREE:
            return told(
                "bad-free", f"`free` of {address:#x}, which `malloc` did not return or which is freed already", who
            )
        case state.BAD_COPY_SIZE:
            message, help = _bad_copy(extra, size, instruction)
            return told("bad-copy-size", message, who, helps=[help])
        case state.BAD_SIZE:
            unit = "8 up to 16777216" if instruction.opcode.mnemonic == "st" else "16"
            return told("misaligned", f"`{instruction.opcode.text}` of {extra} bytes, not a multiple of {unit}", who)
        case state.NO_WARPGROUP:
            return told("barrier-divergence", "a warpgroup is four warps, but this one has fewer", who,
                        [f"the block has {extra} threads"],
                        ["launch a multiple of 128 threads, or let only whole warpgroups come here"])  # fmt: skip
        case state.DIVERGENT_DESCRIPTOR:
            return told("divergent-descriptor", "threads of a warpgroup gave `wgmma` different matrix descriptors",
                        f"{who} gave other descriptors than thread {extra}",
                        helps=["compute descriptors from what all threads share, not from `%tid`"])  # fmt: skip
        case state.BAD_DESCRIPTOR:
            decode = Descriptor.decode_for_tcgen05 if instruction.opcode.mnemonic == "tcgen05" else Descriptor.decode
            named = "copied" if "cp" in instruction.opcode.modifiers else "B" if size >> 33 & 1 else "A"
            return told("out-of-bounds", *_bad_descriptor(launch, who, decode(extra), address, size, named))
        case state.BAD_TENSOR_ADDRESS if extra & 0xFFFFFFFF == FREED:
            message, help = explain_use_after_free(address, size)
            freed = launch.span_of(extra >> 32)
            others = [] if freed is None else [Label(freed, "freed here")]
            return error("use-after-free", message, span, who, others=others, helps=[help])
        case state.BAD_TENSOR_ADDRESS:
            message, help, notes = explain_address(extra, address, size, fault.get("thread") // 32)
            return told("out-of-bounds", message, who, notes, [help])
        case state.BAD_ALLOCATION:
            message, help, notes = explain_allocation(extra, address, size)
            return told("bad-allocation", message, who, notes, [help])
        case state.BAD_INSTRUCTION_DESCRIPTOR:
            message, notes = explain_description(extra, address, "cp" in instruction.opcode.modifiers)
            return told("bad-descriptor", message, who, notes)
        case state.TENSOR_LEAK:
            message = f"{extra} columns of tensor memory are still allocated when the block ends"
            return told("tensor-memory-leak", message, f"allocated here by {who.partition(' of ')[2]}",
                        helps=["`tcgen05.dealloc` with the same number of columns, after all uses"])  # fmt: skip
        case state.BAD_TENSOR_MAP:
            message, notes, helps = explain_map(extra, address, size)
            return told("bad-tensor-map", message, who, notes, helps)
        case state.BAD_COORDINATE:
            start = address - (address >> 31 << 32)
            if not extra & 0xFFFFFFFF:
                where = f"a box that is stored outside of the tensor: it starts at {start} in dimension {extra >> 32}"
                return told(
                    "out-of-bounds", where, who, helps=["use coordinates from 0 on: only loads may have negative ones"]
                )
            where = f"a box that starts at byte {start} of a tensor row, not a multiple of {extra}"
            return told("misaligned", where, who, helps=[f"let the first coordinate be a multiple of {extra} bytes"])
        case state.HANG:
            snapshot = snapshot_of(launch, worker)
            assert snapshot is not None
            return explain_hang(launch, snapshot)
        case state.NO_MEMORY if size:
            return told("out-of-memory", f"{size} blocks wait for others, and this machine has no memory to start more",
                        who, [f"{launch.finished.value} of {launch.total} blocks have ended; whether this is a hang "
                              "is known only when all others have started"],
                        ["use a smaller grid, or smaller blocks"])  # fmt: skip
        case state.NO_MEMORY:
            return told("out-of-memory", "this machine has no memory left for the kernel", who)
        case state.ASSERTION:
            assertion = launch.services.assertion
            assert assertion is not None
            message, file, line, function = assertion
            return told("assertion-failed", f"assertion `{message}` failed", who, [f"in `{function}`, {file}:{line}"])
    raise AssertionError(f"fault {kind}")


def _mismatch(module: ir.Module, call: ir.Instruction, number: int, who: str) -> Diagnostic:
    """A call by address of a function that returns or takes something else than the call's prototype."""
    name, prototype = list(layout.function_numbers(module))[number], call.operands[-1]
    assert isinstance(prototype, ir.LabelReference)
    message, help = f"a call of `{name}`, whose results and parameters are not those of `{prototype.name}`", "prototype"
    if module[name].kind == "entry":
        message, help = f"a call of `{name}`, which is a kernel", "address"
    declared = module.name_span(module[name])
    others = [Label(declared, "declared here")] if declared else []
    return error("bad-call", message, module.span(call), who, others=others, helps=[f"check the {help} of the call"])


def _bad_copy(given: int, most: int, copy: ir.Instruction) -> tuple[str, str]:
    """Message and help for a number of bytes that a copy can't have."""
    name = f"`{copy.opcode.text}`"
    if "bulk" in copy.opcode.modifiers:
        return f"{name} ignores {given} bytes at one end, at most {most}", "start the copy at another address instead"
    return (
        f"{name} reads {given} bytes for a copy of {most}",
        f"give a source size of at most {most}: what is missing becomes zeros",
    )


def _bad_descriptor(
    launch: Launch, who: str, descriptor: Descriptor, address: int, about: int, name: str
) -> tuple[str, str, list[str], list[str]]:
    """Message, label, notes and helps for a matrix in shared memory that is not all there: A, B, or one `copied`."""
    row, chunk, width = about & 0xFFFF, about >> 16 & 0xFFFF, about >> 34
    along = chunk * (CHUNK * 8 // width)
    element = (along, row) if about >> 32 & 1 else (row, along)
    if name == "B":
        element = (element[1], element[0])
    matrix, part = f"matrix {name}", f"element ({element[0]}, {element[1]}) of {name}"
    if name == "copied":
        matrix, part = "the matrix that `tcgen05.cp` copies", f"byte {CHUNK * chunk} of its row {row}"
    return (
        f"{matrix} reaches outside of shared memory",
        f"{who}: {part} would be at address {address:#x}",
        [
            f"the descriptor says: {descriptor}",
            f"the block has {launch.shared_size} bytes of shared memory",
        ],
        ["a descriptor holds addresses and offsets as multiples of 16: `(bytes & 0x3ffff) >> 4`"],
    )


def _neighbourhood(launch: Launch, address: int, space: int, block: int) -> tuple[str, list[str]]:
    """Which memory was missed, and by how far; `block` is whose thread it was."""
    rank = (address >> state.RANK_SHIFT) - 1
    if space == state.CLUSTER_SPACE and rank >= launch.cluster_size:
        return "the cluster", [f"it has {launch.cluster_size} blocks, none of rank {rank}"]
    if space == state.CLUSTER_SPACE:
        owner = block_name(launch, companion(launch, block, rank))
        return f"shared memory of {owner}", [f"the block has {launch.shared_size} bytes of shared memory"]
    if space == state.SHARED_SPACE and 0 <= rank < launch.cluster_size:
        owner = block_name(launch, companion(launch, block, rank))
        return "shared memory of its own block", [f"the address is one in {owner}, which `.shared::cta` does not reach"]
    if space in _SPACES:
        limit = {state.SHARED_SPACE: launch.shared_size}.get(space)
        note = [f"the block has {limit} bytes of shared memory"] if limit is not None else []
        return f"{_SPACES[space]} memory", note
    region = launch.regions.at(address)
    if region is None or address - region.base > 1 << 32:
        return "all memory the kernel has", ["the address is 0: a null pointer"] if address < 4096 else []
    past = address - region.base
    if past < region.size:
        place = f"starts at byte {past} of it"
    else:
        place = f"starts {past - region.size} bytes past its end" if past > region.size else "starts at its end"
    return region.name, [f"{region.name} has {region.size} bytes; the access {place}"]
