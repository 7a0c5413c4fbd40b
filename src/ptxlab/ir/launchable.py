"""`launch`, with its keywords: what kernels in PTX and kernels in Python have in common.

What runs kernels is layers above the program: it is a service (`ptxlab.services`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.report import KernelError, PtxError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from ptxlab.device.options import LaunchOptions as LaunchOptions
    from ptxlab.device.record import Record as Record
    from ptxlab.device.result import Result as Result


class Launchable:
    """A kernel that can be launched; `_launch` is what it does with the arguments and the options."""

    __slots__ = ()

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[object] = (),
        *,
        shared: int = 0,
        cluster: int | Sequence[int] | None = None,
        device: str = "auto",
        detectors: bool | Iterable[str] = True,
        seed: int = 0,
        seeds: int | Iterable[int] | None = None,
        schedule: str | Sequence[int] | None = None,
        executor: Executor | None = None,
        blocks: Sequence[int | Sequence[int]] | None = None,
        on_error: str = "raise",
        timeout: float | None = None,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        profile: bool = False,
        gpu: str | None = None,
        contract: str | None = None,
        cooperative: bool = False,
        overlap: bool = False,
        stream: object = None,
        compile: str | Path | None = None,
        wait: bool = True,
        record: Record | None = None,
        timeline: bool | int = False,
    ) -> Result:
        """Run a kernel and return a `Result`; arrays among `args` are changed in place.

        `device` is "cpu" for the emulator, "cuda" (or "cuda:1") for a GPU, "both" to run on both and compare bit for
        bit. "auto" is a GPU if an argument is there, or if `detectors=False` and there is one that can run the module;
        otherwise the emulator, because only it finds races and says what a wrong kernel does wrong. `shared` is bytes
        of dynamic shared memory; `on_error="collect"` returns findings instead of raising `KernelError`, `"strict"`
        raises for warnings too, those of `ptxlab.check` among them; `timeout` is in seconds, of
        compiling and running together; `cluster` is the blocks of a cluster; `cooperative=True` has all blocks resident
        at once, as CUDA's `grid.sync()` requires; `overlap=True` lets it start before the grid before it on its stream
        is complete, as `ptxlab.launch_chain` has it.

        For the emulator: `detectors=False` runs none of them, `detectors="data-race"` that one alone; `seed` chooses
        the order in which threads run, and `seeds=20` tries that many, each on the same data, until one finds an error;
        `schedule` lets threads take steps as a finding of `ptxlab.explore` says; `executor` is where seeds are tried,
        by default on this machine's cores; `blocks` runs only these blocks of the grid, or the clusters that they
        belong to; `profile=True` counts bank conflicts and sectors; `workers` is how many cores run blocks, and
        `progress` is called with the number of blocks that have ended and that of all; `record=ptxlab.Record(…)` writes
        down what threads do, and `result.trace` reads it.

        `timeline=True` has each warp record when it runs and waits, and when it issues copies and MMAs, by the clock of
        its SM on a GPU, in steps of the emulator here: see `result.timeline`. A number is how many spans a warp has
        space for, 512 otherwise.

        `gpu="H200"` computes with that GPU's tensor cores, by default with those of the GPU that the module's target
        names: an A100 for `sm_80`. `contract` says which `mul` and `add` without a rounding modifier become one
        `fma`: "none" (the default), "all" that may be, or those that "ptxas" contracts, read from its SASS.

        For a GPU: `stream` is a number or an object with `__cuda_stream__`; `compile` is "ptxas", "driver" or the path
        of a cubin file that was compiled ahead; `wait=False` returns at once.
        """
        given = locals()  # the keywords by name, as `LaunchOptions` has them
        del given["self"], given["args"]
        __tracebackhide__ = True  # a traceback ends at the line of the user, in pytest and in IPython
        try:
            return self._launch(args, _launching().LaunchOptions.of(given))
        except (KernelError, PtxError) as wrong:  # the diagnostics say it all; where we found them says nothing
            raise wrong.with_traceback(None) from wrong.__cause__

    def _launch(self, args: Sequence[object], options: LaunchOptions) -> Result:
        raise NotImplementedError


def launch(kernel: Launchable, args: Sequence[object], options: LaunchOptions) -> Result:
    """Run a kernel in PTX."""
    result: Result = _launching().launch(kernel, args, options)
    return result


def _launching() -> Any:
    """What runs kernels."""
    from ptxlab.services import service  # by what asks for it alone: this module is loaded by every command

    return service("launch")
