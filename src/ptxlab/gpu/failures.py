"""What the driver's errors mean and what to do about them: `explain` makes a diagnostic of each.

A diagnostic has the code that the emulator gives to the same mistake, where there is one. Those in `FATAL` break the
context: nothing else runs in it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab import ir
from ptxlab.gpu.driver import DriverError
from ptxlab.gpu.hardware import Gpu
from ptxlab.report import Diagnostic, Span, error

_LOOK = 'run the same launch with `device="cpu"`: the emulator names the instruction, the thread and the address'
_UNKNOWN_PLACE = "a GPU does not report which instruction it was"


@dataclass(frozen=True, slots=True)
class Failure:
    """A driver error, explained."""

    code: str
    message: str
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


FATAL = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": Failure(
        "out-of-bounds", "an access outside of all memory the kernel has", (_UNKNOWN_PLACE,), (_LOOK,)
    ),
    "CUDA_ERROR_MISALIGNED_ADDRESS": Failure(
        "misaligned-access", "an access at an address that is not a multiple of its size", (_UNKNOWN_PLACE,), (_LOOK,)
    ),
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": Failure(
        "wrong-state-space",
        "an access to a state space with an address of another one",
        (_UNKNOWN_PLACE,),
        ("use the generic form, or make the address with `cvta.to`",),
    ),
    "CUDA_ERROR_INVALID_PC": Failure("bad-call", "a jump or call to where no code is", (_UNKNOWN_PLACE,), (_LOOK,)),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": Failure(
        "stack-overflow",
        "the stack of a thread is full or broken",
        (),
        ("bound the recursion, or turn it into a loop",),
    ),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": Failure(
        "illegal-instruction", "an instruction that this GPU refuses with these operands", (_UNKNOWN_PLACE,), (_LOOK,)
    ),
    "CUDA_ERROR_LAUNCH_FAILED": Failure(
        "trap",
        "the kernel stopped with `trap`, or in a way that the GPU has no name for",
        ("a wrong access to shared or local memory, or to a barrier, can end like this too",),
        (_LOOK,),
    ),
    "CUDA_ERROR_ASSERT": Failure("assertion-failed", "an assertion of the kernel failed", (), (_LOOK,)),
    "CUDA_ERROR_LAUNCH_TIMEOUT": Failure(
        "timeout",
        "the system stopped the kernel because it ran too long",
        ("a GPU that also draws the screen is given back after a few seconds",),
        ("give each launch less work",),
    ),
    "CUDA_ERROR_ECC_UNCORRECTABLE": Failure(
        "broken-memory", "the GPU's memory has an uncorrectable error", (), ("see `nvidia-smi -q -d ECC`",)
    ),
    "CUDA_ERROR_CONTAINED": Failure(
        "broken-memory", "the GPU's memory has an uncorrectable error", (), ("run it again",)
    ),
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": Failure(
        "unfreed-tensor-memory",
        "the kernel ended without freeing its tensor memory",
        (),
        ("call `tcgen05.dealloc` for every `tcgen05.alloc` on every path",),
    ),
}
OTHERS = {
    "CUDA_ERROR_OUT_OF_MEMORY": Failure(
        "out-of-memory",
        "the GPU has too little memory left",
        (),
        ("use smaller arrays, or free those of other programs: `nvidia-smi` lists them",),
    ),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": Failure(
        "bad-launch",
        "a block needs more registers or shared memory than an SM has",
        ("an SM has 65536 registers: 1024 threads can have 64 each",),
        ("use smaller blocks, or state their size with `.maxntid` so that ptxas saves registers",),
    ),
    "CUDA_ERROR_INVALID_VALUE": Failure(
        "bad-launch",
        "the driver refuses the launch: a size or an argument is out of range",
        (),
        ("compare grid, block, cluster and shared memory with what the GPU allows",),
    ),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": Failure(
        "bad-launch",
        "the driver refuses this cluster",
        ("a cluster has at most 8 blocks, 16 on some GPUs, and divides the grid",),
        ("use a smaller cluster, or a grid that is a multiple of it",),
    ),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": Failure(
        "bad-launch",
        "the blocks of a cooperative launch must all fit on the GPU at once, and they don't",
        (),
        ("use fewer blocks and let each do more, or leave out `cooperative`",),
    ),
    "CUDA_ERROR_NOT_SUPPORTED": Failure("bad-launch", "this GPU or driver does not support what the launch asks for"),
    "CUDA_ERROR_INVALID_HANDLE": Failure(
        "bad-stream", "the stream does not exist, or belongs to another GPU", (), ("pass a stream of this GPU",)
    ),
    "CUDA_ERROR_INVALID_PTX": Failure("invalid-ptx", "the driver's compiler refuses the module"),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": Failure(
        "unsupported-version", "the driver's compiler is too old for this version of PTX"
    ),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": Failure("wrong-target", "the code is for another GPU"),
    "CUDA_ERROR_INVALID_IMAGE": Failure("wrong-target", "the code is not one that this GPU can load"),
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": Failure(
        "missing-tool",
        "the driver came without its compiler",
        ("`libnvidia-ptxjitcompiler` was not found",),
        ('use `compile="ptxas"`, or install the whole driver',),
    ),
    "CUDA_ERROR_NOT_FOUND": Failure("unknown-name", "the compiled module has no kernel of this name"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The kernel that a message is about: its name, and where that is in the source.

    Not the kernel itself: what is kept of a module must not keep the module.
    """

    title: str
    span: Span | None

    @classmethod
    def of(cls, module: ir.Module, kernel: ir.Function) -> Subject:
        return cls(kernel.title, module.name_span(kernel))


def explain(problem: DriverError, kernel: Subject, gpu: Gpu, notes: tuple[str, ...] = ()) -> Diagnostic:
    """An error of the driver as a diagnostic on the kernel that it met."""
    found = FATAL.get(problem.name) or OTHERS.get(problem.name)
    if found is None:
        return error("driver-error", f"`{kernel.title}`: the driver says {problem.name}", kernel.span, "this kernel",
                     notes=[f"in {problem.call}, on {gpu.name}", *notes])  # fmt: skip
    return error(
        found.code,
        f"`{kernel.title}` on {gpu.name}: {found.message}",
        kernel.span,
        "this kernel",
        notes=[*found.notes, *notes],
        helps=found.helps,
    )


def is_fatal(problem: DriverError) -> bool:
    """Whether the context is broken now."""
    return problem.name in FATAL
