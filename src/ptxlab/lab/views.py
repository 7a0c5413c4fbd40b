"""What the page asks for, by name: `run`, `steps/3`, `registers/0/3`, `memory/shared/0/1/3`.

Each answer depends on its name alone, and there are finitely many names: a server makes answers when it is asked,
a self-contained file has them inside. `3` is a window of warp steps (`windows.py`) in all of these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from ptxlab.debug.declarations import Declarations
from ptxlab.lab import windows
from ptxlab.lab.barriers import Barriers
from ptxlab.lab.copies import RecordedCopies
from ptxlab.lab.memory import MemoryHistory
from ptxlab.lab.moves import LaneMoves
from ptxlab.lab.origins import Origins
from ptxlab.lab.program import describe
from ptxlab.lab.registers import RegisterHistory
from ptxlab.lab.tensor_memory import TensorView
from ptxlab.lab.tiles import Tiles
from ptxlab.lab.tracks import Tracks
from ptxlab.lab.variables import LaneVariables
from ptxlab.report import PtxError
from ptxlab.trace import Trace
from ptxlab.trace.accesses import SHARED, SPACES


class Views:
    """A recorded launch as the answers that the page asks for."""

    def __init__(
        self, trace: Trace, folders: Sequence[Path] | None = None, declarations: Declarations | None = None
    ) -> None:
        """With `folders`, source that the kernel was compiled from is shown only where it is in one of them.

        `declarations` are those of its source in C++, if the recorded PTX has none.
        """
        self.trace = trace
        self.folders = folders
        self._declarations = declarations
        with ThreadPoolExecutor(1) as pool:  # views of memory need all writes, which take as long to find as the steps
            writes = pool.submit(lambda: trace.accesses.writes)
            self.steps = trace.warp_steps
            writes.result()
        self._lock, self._timeline_lock = threading.Lock(), threading.Lock()  # the first timeline takes long
        self._known = lru_cache(maxsize=512)(self._answer)
        self._answers: dict[str, Callable[..., Any]] = {
            "run": self._run,
            "steps": lambda window: windows.window_of(self.steps, window),
            "accesses": lambda window: windows.accesses_in(self.steps, window),
            "warps": lambda block, window: windows.warps_at(self.steps, block, window),
            "line": lambda line, block=None: windows.steps_at(self.steps, line, block),
            "ticks": lambda warp, position: windows.ticks_at(self.steps, warp, position),
            "registers": self._registers,
            "memory": self._memory,
            "barriers": self._barriers,
            "sass": self._sass,
            "origin": self._origin,
            "variables": lambda *given: self._variables_of.listed(*given),
            "value": lambda *given: self._variables_of.value(*given),
            "step": lambda *given: self._moves_of.step(*given),
            "stop": lambda *given: self._moves_of.stop(*given),
            "tensor": lambda block: self._tensor_memory_of.uses(block),
            "words": lambda block, step: self._tensor_memory_of.words(block, step),
            "tiles": lambda step: self._tiles_of.read_by(step),
            "copies": lambda block: self._copies_of.listed(block),
            "copy": lambda block, number: self._copies_of.shown(block, number),
            "timeline": lambda block, level, tile: self._timeline_of.tile(block, level, tile),
        }
        first = trace.blocks[0] if trace.blocks else 0
        self._memory_of.writes(SHARED, first)
        trace.recorded_barriers.histories(first)

    @property
    def title(self) -> str:
        """What the launch is, in a line."""
        return repr(self.trace).strip("<>")

    def prepare(self) -> None:
        """Make what many answers need, so that the first of them is fast."""
        for part in self.parts():
            part()

    def parts(self) -> list[Callable[[], Any]]:
        """What makes that, part by part."""
        first = self.trace.blocks[0] if self.trace.blocks else 0
        return [
            lambda: self._timeline_of.tile(first, 0, 0),
            lambda: self.trace.columns.threads,  # origins need the entries of each
            lambda: self._tensor_memory_of.words(first, self.steps.count),
            *(partial(self._prepare_events, block) for block in self.trace.blocks),
        ]

    def _prepare_events(self, block: int) -> None:
        own = self.steps.event_steps
        own[own.of_block(block)[:1]]

    def get(self, name: str) -> Any:
        """The answer of a name; `KeyError` if there is none."""
        if name == "sass":  # ptxas takes seconds, and uses nothing that others use
            return self._known(name)
        with self._timeline_lock if name.startswith("timeline/") else self._lock:
            return self._known(name)

    def _answer(self, name: str) -> Any:
        kind, *given = name.split("/")
        if kind not in self._answers:
            raise KeyError(name)
        try:
            return self._answers[kind](*(int(one) if one.lstrip("-").isdigit() else one for one in given))
        except (TypeError, ValueError, IndexError) as wrong:
            raise KeyError(f"{name}: {wrong}") from wrong

    def _run(self) -> dict[str, object]:
        return describe(self.steps, self.folders)

    def _registers(self, warp: int, window: int) -> dict[str, object]:
        start, end = windows.bounds(self.steps, window)
        return {"start": start, "values": self._registers_of.at(warp, start),
                "writes": self._registers_of.written(warp, start, end)}  # fmt: skip

    def _memory(self, space: str, owner: int, page: int, window: int) -> Any:
        start, end = windows.bounds(self.steps, window)
        return self._memory_of.page(SPACES[space], owner, page, start, end)

    def _barriers(self, block: int, window: int) -> Any:
        return self._barriers_of.window(block, *windows.bounds(self.steps, window))

    def _sass(self) -> dict[str, object]:
        """What ptxas makes of each line; there is none without NVIDIA's tools."""
        from ptxlab.toolchain import side_by_side

        try:
            listing = side_by_side(self.trace.description["text"], None, "kernel.ptx")
        except PtxError as wrong:
            raise KeyError(f"SASS: {wrong.diagnostics[0].message}") from wrong
        tool = listing.assembly.tool
        lines = {row.line: [one.text for one in row.sass] for row in listing.rows if row.sass}
        return {"title": f"{listing.assembly.target} by {tool.name} {tool.version}", "lines": lines}

    def _origin(self, kind: str, *given: object) -> Any:
        find: dict[str, Callable[..., Any]] = {
            "register": self._origins_of.of_register, "tensor": self._origins_of.of_tensor,
            "memory": self._origins_of.of_memory,
        }  # fmt: skip
        return find[kind](*given)

    @cached_property
    def _variables_of(self) -> LaneVariables:
        return LaneVariables(self.steps, self._declarations)

    @cached_property
    def _moves_of(self) -> LaneMoves:
        return LaneMoves(self.steps, self._declarations)

    @cached_property
    def _origins_of(self) -> Origins:
        return Origins(self.steps)

    @cached_property
    def _tensor_memory_of(self) -> TensorView:
        return TensorView(self.steps)

    @cached_property
    def _tiles_of(self) -> Tiles:
        return Tiles(self.steps, self._memory_of)

    @cached_property
    def _copies_of(self) -> RecordedCopies:
        return RecordedCopies(self.steps, self._barriers_of)

    @cached_property
    def _timeline_of(self) -> Tracks:
        return Tracks(self.steps, self._barriers_of)

    @cached_property
    def _registers_of(self) -> RegisterHistory:
        return RegisterHistory(self.steps)

    @cached_property
    def _memory_of(self) -> MemoryHistory:
        return MemoryHistory(self.steps)

    @cached_property
    def _barriers_of(self) -> Barriers:
        return Barriers(self.steps)
