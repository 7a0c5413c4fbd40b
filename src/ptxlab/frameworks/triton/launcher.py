"""One launch of a compiled Triton kernel: its PTX as a module, its arguments as parameters, all that Triton adds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from ptxlab import ir
from ptxlab.device.result import Result
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.sources import module_from
from ptxlab.frameworks.triton.values import parameters_of

Run = Callable[["Launcher", tuple[int, int, int], Sequence[Any]], Any]


class Prepared(NamedTuple):
    """A launch that is about to be made."""

    grid: tuple[int, int, int]
    block: int
    values: list[Any]
    """Its parameters."""
    own: dict[str, Any]
    """Options of its own."""
    scratch: list[Any]
    """Memory that has to be there until it has run."""


class Launcher:
    """What Triton calls for each launch of a kernel that it has compiled; `run` is what the session does with it."""

    def __init__(self, src: Any, metadata: Any, run: Callable[..., object]) -> None:
        self.src, self.metadata, self._run = src, metadata, run
        modes = str(getattr(metadata, "instrumentation_mode", ""))
        if modes:
            raise NotImplementedError(
                f"Triton instruments the kernel ({modes}): the emulator has its own detectors; unset "
                "TRITON_INSTRUMENTATION_MODE"
            )

    def __call__(self, x: int, y: int, z: int, stream: object, function: object, packed: object, *rest: Any) -> None:
        """Launch it. `rest` is the metadata of the launch, two hooks, and the arguments."""
        launch_metadata, on_enter, on_exit, *args = rest
        if on_enter is not None:
            on_enter(launch_metadata)
        if x * y * z > 0:
            self._run(self, (x, y, z), args)
        if on_exit is not None:
            on_exit(launch_metadata)

    @property
    def name(self) -> str:
        """Of the kernel, as in PTX."""
        return str(self.metadata.name)

    @property
    def is_gluon(self) -> bool:
        """Whether the kernel is written in Gluon."""
        function = getattr(self.src, "fn", None)
        return bool(function is not None and hasattr(function, "is_gluon") and function.is_gluon())

    @property
    def module(self) -> ir.Module:
        """The kernel's module, whose findings are shown on the lines of its Python."""
        return module_of(_ptx_of(self.src, self.metadata), self.name)

    def prepared(self, grid: tuple[int, int, int], args: Sequence[Any], arrays: Arrays) -> Prepared:
        """A launch that is about to be made."""
        metadata = self.metadata
        kernel = self.module[self.name]
        clusters = int(getattr(metadata, "num_ctas", 1))
        signature = list(self.src.signature.items())
        descriptors = getattr(metadata, "tensordesc_meta", None)
        named = _named(signature, self.src)
        if len(args) != len(named):
            names = (
                f"{len(named)} arguments ({', '.join(name for name, _ in named)}), with those known when it is compiled"
            )
            raise TypeError(f"`{self.name}` takes {names}, not {len(args)}")
        values = list(parameters_of(named, args, descriptors, arrays))
        blocks = grid[0] * clusters * grid[1] * grid[2]
        scratch = [_scratch(metadata, blocks, kind) for kind in ("global", "profile")]
        hidden = len(kernel.parameters) - len(values)
        for memory, kind in list(zip(scratch, ("global", "profile"), strict=True))[: max(hidden, 0)]:
            values.append(arrays.pointer(memory, f"Triton's {kind} scratch memory"))
        own = {
            "shared": int(metadata.shared),
            "cluster": (clusters, 1, 1) if clusters > 1 else None,
            "cooperative": bool(getattr(metadata, "launch_cooperative_grid", False)),
        }
        return Prepared((grid[0] * clusters, grid[1], grid[2]), 32 * int(metadata.num_warps), values, own, scratch)

    def launch(self, grid: tuple[int, int, int], args: Sequence[Any], arrays: Arrays, **options: Any) -> Result:
        """Run it on the emulator."""
        made = self.prepared(grid, args, arrays)
        kernel = self.module[self.name]
        with arrays.on_host() as copied:
            result = kernel.launch(made.grid, made.block, made.values, device="cpu", **made.own, **options)
        result.copied = copied
        return result


def _named(signature: Sequence[tuple[object, object]], src: object) -> list[tuple[str, object]]:
    """Names and types of arguments; older versions of Triton number them."""
    names = src.fn.arg_names if hasattr(src, "fn") else []
    return [(names[key] if isinstance(key, int) and key < len(names) else str(key), type) for key, type in signature]


def _scratch(metadata: object, blocks: int, kind: str) -> Any:
    """Memory that Triton has its user allocate, by `triton.set_allocator`; ours, where there is no allocator."""
    size = int(getattr(metadata, f"{kind}_scratch_size", 0) or 0) * blocks
    if not size:
        return None
    allocation = import_module("triton.runtime._allocation")
    allocator = allocation._allocator.get() if kind == "global" else allocation._profile_allocator
    is_missing = allocator.__class__.__name__ == "NullAllocator" or (
        kind == "profile" and not allocation.has_profile_allocator()
    )
    if is_missing:
        return numpy.zeros(size, numpy.uint8)
    return allocator(size, int(getattr(metadata, f"{kind}_scratch_align", 256)), 0)


def _ptx_of(src: Any, metadata: Any) -> str:
    """The PTX that Triton has written to its cache."""
    manager = import_module("triton.runtime.cache").get_cache_manager(metadata.hash)
    name = str(src.name)[:150]
    files = manager.get_group(f"{name}.json") or {}
    path = next((file for file in files.values() if str(file).endswith(".ptx")), None)
    if path is None:
        raise RuntimeError(
            f"Triton has not kept the PTX of `{name}`: unset TRITON_STORE_BINARY_ONLY, or let Triton have a cache "
            "folder (TRITON_CACHE_DIR)"
        )
    return Path(path).read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def module_of(text: str, name: str) -> ir.Module:
    """A module of Triton's PTX. Lines of the user's files are shown, not those of Triton's own functions."""
    return module_from(with_lines(text), f"{name}.ptx", Path(str(import_module("triton").__file__)).parent)


_LOCATION = re.compile(r"\s*\.loc\s")


def with_lines(text: str) -> str:
    """The PTX with one line of source for each piece of inline assembly: LLVM counts on within it, line by line.

    >>> with_lines(".loc 1 7 5\\n// begin inline asm\\n.loc 1 8 5\\n// end inline asm\\n").split("\\n")[2]
    '.loc 1 7 5'
    """
    lines, before, is_inside = text.split("\n"), "", False
    for number, line in enumerate(lines):
        if "// begin inline asm" in line:
            is_inside = True
        elif "// end inline asm" in line:
            is_inside = False
        elif _LOCATION.match(line):
            if is_inside and before:
                lines[number] = before
            else:
                before = line
    return "\n".join(lines)
