"""Calls and branches that lead nowhere, and kernels that stop themselves."""

from __future__ import annotations

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.abi.faults import CallReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.report import Diagnostic, Label
from ptxlab.report.reader import spell_option


def explain_trap(fault: FaultSnapshot) -> Diagnostic:
    """The kernel executes `trap`."""
    operands = [one for _, instruction in fault.launch.compiled.instructions for one in instruction.operands]
    is_sync = any(isinstance(one, ir.SpecialRegister) and one.kind is SpecialKind.WORKSPACE for one in operands)
    option = spell_option("--cooperative", "cooperative=True", "cudaLaunchCooperativeKernel")
    help = f"`grid.sync()` needs a cooperative launch: {option}"
    helps = [help] if is_sync and not fault.launch.workspace else []
    return fault.error("trap", "the kernel stops itself with `trap`", helps=helps)


def explain_assertion(fault: FaultSnapshot) -> Diagnostic:
    """A call of `__assertfail`."""
    assertion = fault.launch.services.assertion
    assert assertion is not None
    message, file, line, function = assertion
    return fault.error("assertion-failed", f"assertion `{message}` failed", notes=[f"in `{function}`, {file}:{line}"])


def explain_stack_overflow(fault: FaultSnapshot) -> Diagnostic:
    """More nested calls than a thread has memory for."""
    message = f"the stack of a thread is full after {fault.value} calls"
    return fault.error("stack-overflow", message, helps=["bound the recursion, or turn it into a loop"])


def explain_bad_branch(fault: FaultSnapshot) -> Diagnostic:
    """An index beyond the list of targets."""
    return fault.error("bad-branch", f"`brx.idx` with index {fault.value}, beyond its list of targets")


def explain_bad_call(fault: FaultSnapshot) -> Diagnostic:
    """A call by address of what is not a function, or not of the declared one; of the network where there is none."""
    if fault.reason == CallReason.NOT_A_FUNCTION:
        return fault.error("bad-call", f"a call of {fault.address:#x}, which is not a function")
    if fault.reason == CallReason.NO_NETWORK:
        message = "an operation of the network between GPUs, in a launch on one GPU"
        return fault.error("bad-call", message, helps=["launch the kernel on a GPU of a `ptxlab.node`"])
    module, prototype = fault.launch.compiled.module, fault.instruction.operands[-1]
    name = list(layout.function_numbers(module))[fault.value]
    assert isinstance(prototype, ir.LabelReference)
    message, help = f"a call of `{name}`, whose results and parameters are not those of `{prototype.name}`", "prototype"
    if module[name].kind == "entry":
        message, help = f"a call of `{name}`, which is a kernel", "address"
    declared = module.name_span(module[name])
    others = [Label(declared, "declared here")] if declared else []
    return fault.error("bad-call", message, others=others, helps=[f"check the {help} of the call"])
