"""The clock, the power and the temperature of the GPU while it is measured, as `nvidia-smi` reports them."""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from types import TracebackType

from ptxlab.toolchain.process import on_path

_QUERY = {"clocks.sm": "SM clock, MHz", "power.draw.instant": "power, W", "temperature.gpu": "temperature, °C"}
_EVERY = 50  # milliseconds


class ClockLog:
    """Readings from when it is entered on; none where there is no `nvidia-smi`."""

    def __init__(self) -> None:
        self.readings: list[tuple[float, dict[str, float | None]]] = []
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ClockLog:
        tool = on_path("nvidia-smi")
        if tool is None:
            return self
        command = [tool, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits", "--id=0"]
        self.process = subprocess.Popen(
            [*command, f"--loop-ms={_EVERY}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.terminate()
            self.reader.join()  # to the end of what was written
            with self.process:
                pass  # closes the pipe and waits

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.add(line, time.monotonic())

    def add(self, line: str, now: float) -> None:
        """Keep a line; what this GPU does not report is left out."""
        self.readings.append((now, dict(zip(_QUERY.values(), map(_number, line.split(",")), strict=False))))

    def since(self, start: float) -> dict[str, list[float]]:
        """The least, the median and the greatest reading of each kind after a time of `time.monotonic`.

        >>> log = ClockLog()
        >>> for number in range(3):
        ...     log.add(f"{1700 + number}, 600.5, 60", number)
        >>> log.since(1)["SM clock, MHz"]
        [1701.0, 1701.5, 1702.0]
        """
        found: dict[str, list[float]] = {}
        for when, reading in self.readings:
            for name, value in reading.items():
                if when >= start and value is not None:
                    found.setdefault(name, []).append(value)
        return {name: [min(values), statistics.median(values), max(values)] for name, values in found.items()}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
