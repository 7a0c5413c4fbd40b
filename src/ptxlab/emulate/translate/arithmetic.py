"""Whose arithmetic a kernel is translated with: a GPU's, and which products and sums are contracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device.options import LaunchOptions
from ptxlab.device.wrong_target import wrong_target
from ptxlab.isa.gpus import GpuModel, gpu_named, gpu_of_target
from ptxlab.report import KernelError
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.contraction import ProductSums


@dataclass(frozen=True)
class Fused:
    """What ptxas makes of the arithmetic of a function."""

    sums: Mapping[int, int] = field(default_factory=dict)
    """The sums that it contracts, by their positions, and which operand the product is."""
    folds: tuple[int, ...] = ()
    """The quotients by constants whose reciprocals it computes."""


@dataclass(frozen=True)
class Arithmetic:
    """How a kernel computes."""

    gpu: GpuModel
    architecture: str
    """What the module becomes on that GPU."""
    contract: str = "none"
    fused: Mapping[str, Fused] = field(default_factory=dict)
    """What ptxas does, if it was asked, by the names of functions."""

    @property
    def key(self) -> str:
        """What machine code depends on."""
        fused = sha256(repr(sorted(self.fused.items())).encode()).hexdigest() if self.fused else ""
        return f"{self.architecture} {self.contract} {fused}"

    def choose(self, name: str, pairs: ProductSums) -> Fused:
        """What to contract in a function."""
        if self.contract == "all":
            return Fused({pair.sum: pair.operand for pair in pairs.first_of_each()})
        return self.fused.get(name, Fused())


def own_arithmetic(module: ir.Module) -> Arithmetic:
    """That of the GPU that a module's target names, with nothing contracted."""
    return Arithmetic(gpu_of_target(module.target), module.target)


@cache
def _chosen(target: str, name: str | None) -> tuple[GpuModel, str | None]:
    """The GPU, and what a module of this target becomes there, if it can run at all."""
    gpu = gpu_of_target(target) if name is None else gpu_named(name)
    return gpu, gpu.architecture_for(target)


def arithmetic_of(module: ir.Module, kernel: ir.Function, digest: str, options: LaunchOptions) -> Arithmetic:
    """The arithmetic that a launch asks for."""
    gpu, architecture = _chosen(module.target, options.gpu)
    if architecture is None:
        raise KernelError([wrong_target(module, gpu.name, gpu.target, "leave out `gpu`")])
    contract = options.contract or "none"
    if contract != "ptxas":
        return Arithmetic(gpu, architecture, contract)
    from ptxlab.emulate.translate.fused_by_ptxas import fused_by_ptxas

    return Arithmetic(gpu, architecture, contract, fused_by_ptxas(module, kernel, digest, architecture))
