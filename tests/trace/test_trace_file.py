"""Files of recorded launches that are wrong in some way, or incomplete for a reason."""

import resource
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import ptxlab

from .recorded import SUMS, THREADS, record


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("trace") / "sums.ptxtrace"
    record(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"\x7fELF" + data, "is not a recorded launch of ptxlab"),
        (lambda data: b"", "is not a recorded launch of ptxlab"),
        (lambda data: data[:20], "is truncated: its header is not whole"),
        (lambda data: data[:-9], r"is truncated: it has [\d,]+ of [\d,]+ bytes"),
        (lambda data: data[:8] + b"\x09" + data[9:], "has version 9 of the format; this ptxlab reads version 2"),
        (lambda data: data[:60] + b"\xff\xff" + data[62:], "is damaged: its header does not have the right checksum"),
        (lambda data: data[:-9] + b"\xff" + data[-8:], r"is damaged: chunk \d does not have the right checksum"),
    ],
)
def test_a_file_that_is_wrong_is_refused(content: bytes, change, message: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "wrong.ptxtrace"
    path.write_bytes(change(content))
    with pytest.raises(ptxlab.TraceError, match=message):
        ptxlab.Trace.open(path)


def test_what_was_recorded_opens_after_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "interrupted.ptxtrace"
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        record(path, turns=2**31, limit=10**9)
    trace = ptxlab.Trace.open(path)
    assert trace.end == "the launch was interrupted"
    assert trace.steps > 1000
    assert trace.step(trace.steps - 1).registers()["%r2"] == 2**31


def test_what_was_recorded_opens_after_the_disk_was_full(tmp_path: Path) -> None:
    path = tmp_path / "full.ptxtrace"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(OSError, match=r"stopped after [\d,]+ steps, which open: File too large"):
            record(path, turns=60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    trace = ptxlab.Trace.open(path)
    assert trace.end == "the file could not be written any further"
    assert trace.step(trace.steps - 1).line > 0


def test_a_kernel_that_fails_is_recorded_up_to_there(tmp_path: Path) -> None:
    text = SUMS.replace("st.global.u32 [%rd5], %r5;", "st.global.u32 [%rd5+4096], %r5;")
    with pytest.raises(ptxlab.KernelError):
        record(tmp_path / "wrong.ptxtrace", text)
    trace = ptxlab.Trace.open(tmp_path / "wrong.ptxtrace")
    assert trace.end == "the kernel was stopped by a fault"
    assert [(found.code, found.line) for found in trace.findings] == [("out-of-bounds", 33)]
    assert trace.registers(32)["%r5"] == 68
    assert (trace.step(-1).thread, trace.step(-1).line) == (32, 32)


def test_a_recording_is_for_the_emulator() -> None:
    kernel = ptxlab.parse(SUMS)["sums"]
    data = np.zeros(THREADS, np.uint32)
    with pytest.raises(ValueError, match="`record` is for the emulator alone"):
        kernel.launch(1, THREADS, [data, data.copy(), 1], device="cuda", record=ptxlab.Record())
