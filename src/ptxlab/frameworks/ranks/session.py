"""A session on a node: kernels are launched on the GPU of a rank, and run when the ranks wait for them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from ptxlab.device.host_memory import HostMemory, HostPointer
from ptxlab.device.regions import Region
from ptxlab.emulate.host.host_order import RANKS
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.ranks.distributed import Distributed
from ptxlab.frameworks.ranks.turns import Turns
from ptxlab.frameworks.torch_as_cpu import Machine
from ptxlab.frameworks.triton.copies import without_copies
from ptxlab.frameworks.triton.launcher import Launcher
from ptxlab.frameworks.triton.session import CHOSEN, DEFAULT_TARGET, Session, opened, target_of
from ptxlab.node import Node
from ptxlab.report import Diagnostic, KernelError, is_failure


class _NodeMemory(HostMemory):
    """Memory of tensors as memory of the node: it belongs to the GPU that is chosen when it is first used."""

    def __init__(self, node: Node, turns: Turns) -> None:
        super().__init__()
        self._node, self._turns = node, turns

    def add(self, data: Any, name: str, key: int | None = None) -> Region:
        address = int(data.__array_interface__["data"][0])
        key = address if key is None else key
        known = self.regions.get(key)
        if known is None or known.size != data.nbytes:
            known = self.regions[key] = self._node.memory.allocate(self._turns.device, data, None)
        return known

    def forget(self, key: int) -> None:
        region = self.regions.pop(key, None)
        if region is not None and region.base in self._node.memory.regions:
            self._node.memory.free(region)

    def at(self, address: int) -> Region | None:
        """The memory that contains an address."""
        return next((one for one in self.regions.values() if one.base <= address < one.base + max(one.size, 1)), None)


class _Gpus(Machine):
    """The GPUs of a node, as torch sees them."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self.count = ranks, len(ranks.node)

    def current(self) -> int:
        return self._ranks.turns.device

    def choose(self, device: int) -> None:
        if not 0 <= device < self.count:
            raise RuntimeError(f"CUDA device {device}: the node has {self.count} GPUs, 0 to {self.count - 1}")
        self._ranks.turns.device = device

    def wait(self) -> None:
        self._ranks.wait()

    def owner(self, tensor: Any) -> int:
        region = self._ranks.memory.regions.get(tensor.untyped_storage().data_ptr())
        return self.current() if region is None or region.owner_device is None else region.owner_device


class _NodeSession(Session):
    """Triton's session, whose launches are of a node."""

    ranks: Ranks

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
        if not self.is_dry:
            self.ranks.launch(launcher, grid, args)
            self._found = False


class Ranks:
    """The ranks of a node while they are emulated."""

    def __init__(self, node: Node, target: str, options: dict[str, Any]) -> None:
        self.node, self.options = node, options
        self.diagnostics: list[Diagnostic] = []
        self.turns = Turns(len(node), self._run_launched)
        self.memory = _NodeMemory(node, self.turns)
        self.session = _NodeSession(target)
        self.session.ranks = self
        self.session.arrays = arrays = Arrays()
        arrays.memory = self.memory
        self._kept: dict[int, list[object]] = {}  # by rank, what launches that have not run refer to
        self._kernels: dict[int, Launcher] = {}
        self._runs = 0
        self.distributed = Distributed(self)

    def run(self, function: Callable[..., object], *args: object) -> list[Any]:
        """Call a function on each rank, in a thread of its own; what each returned.

        `torch.distributed`, `torch.cuda.current_device()` and the variables of torchrun (`RANK`, `WORLD_SIZE`) say
        which rank it is. What is found is raised here.
        """

        def one(rank: int) -> object:
            with ExitStack() as stack:
                if self.session.mode is not None:
                    stack.enter_context(self.session.mode())
                result = function(*args)
                self.wait()
                return result

        results = self.turns.run(one)
        self.distributed.refuse_unreceived()
        return results

    def multicast(self, addresses: Sequence[int], size: int) -> int:
        """The address under which `multimem` accesses memory of all ranks."""
        return self.node.memory.multicast(tuple(addresses), size)

    def wait(self) -> None:
        """Wait for what this rank has launched; other ranks run meanwhile."""
        if not self.turns.is_rank:
            self._run_launched()
            return
        if self.turns.rank not in self._kept:
            return
        runs = self._runs
        self.turns.wait(lambda: self._runs > runs, "its kernels")

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Launch a kernel of Triton's on the GPU of this rank."""
        made = launcher.prepared(grid, args, self.session.arrays)
        self.keep(args, made)
        kernel = launcher.module[launcher.name]
        self._kernels[id(kernel)] = launcher
        for value in made.values:
            region = self.memory.at(value.address) if isinstance(value, HostPointer) else None
            if region is not None:
                self.node.memory.name(region, value.name.partition("`")[2].rstrip("`)"))
        passed = [struct.pack("<Q", one.address) if isinstance(one, HostPointer) else one for one in made.values]
        self.node[self.turns.device].launch(kernel, made.grid, made.block, passed, **made.own)

    def keep(self, *objects: object) -> None:
        """Keep what a launch refers to until it has run."""
        self._kept.setdefault(self.turns.rank, []).extend(objects)

    def _run_launched(self) -> bool:
        if not self._kept:
            return False
        self._runs += 1
        kernels, self._kernels, kept, self._kept = self._kernels, {}, self._kept, {}
        result = self.node.synchronize(**{"detectors": CHOSEN} | self.options | {"on_error": "collect"})
        kept.clear()
        for launcher in kernels.values():
            if "detectors" not in self.options:
                kernel = launcher.module[launcher.name]
                result.diagnostics = without_copies(result.diagnostics, kernel, launcher.is_gluon)
        self.diagnostics += result.diagnostics
        if is_failure(result.diagnostics, self.options.get("on_error", "raise")):
            raise KernelError(result.diagnostics)
        print(result.output, end="")
        return True


@contextmanager
def emulated(node: Node, target: str | int | None = None, **options: Any) -> Iterator[Ranks]:
    """Have torch and Triton see the GPUs of a node; see `Node.emulated`."""
    ranks = Ranks(node, target_of(DEFAULT_TARGET if target is None else target), options)
    with ExitStack() as stack:
        stack.enter_context(patch.object(node, "order", RANKS))
        stack.enter_context(opened(ranks.session, True, _Gpus(ranks)))
        stack.enter_context(ranks.distributed.installed())
        yield ranks
        ranks.wait()
