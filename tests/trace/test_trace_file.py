"""Files of recorded launches that are wrong in some way, or incomplete for a reason."""

import json
import resource
import signal
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.trace.validation import description_problem

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


Parts = tuple[dict[str, Any], list[tuple[int, bytes]]]


def taken_apart(content: bytes) -> Parts:
    """The description and the chunks, with their kinds."""
    size = int.from_bytes(content[32:40], "little")
    description, chunks, at = json.loads(zlib.decompress(content[48 : 48 + size])), [], 48 + size
    while at < len(content):
        kind, _, size, packed = struct.unpack_from("<IIQQ", content, at)
        data = content[at + 24 : at + 24 + packed]
        chunks.append((kind, data if size == packed else zlib.decompress(data)))
        at += 24 + packed
    return description, chunks


def put_together(header: bytes, parts: Parts) -> bytes:
    """A file with right checksums."""
    description = zlib.compress(json.dumps(parts[0]).encode())
    chunks = b"".join(struct.pack("<IIQQ", kind, zlib.crc32(data), len(data), len(data)) + data
                      for kind, data in parts[1])  # fmt: skip
    valid = 48 + len(description) + len(chunks)
    fixed = header[:16] + struct.pack("<Q", valid) + header[24:32]
    return fixed + struct.pack("<QII", len(description), zlib.crc32(description), 0) + description + chunks


def test_a_file_can_be_taken_apart(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "same.ptxtrace"
    path.write_bytes(put_together(content, taken_apart(content)))
    assert ptxlab.Trace.open(path).registers(3)["%r5"] == 2 + 7 * 5 + 100


def wrong_values(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Descriptions with one value missing or impossible."""
    for key in description:
        yield f"without {key}", {name: value for name, value in description.items() if name != key}
        if key not in ("blocks", "warps", "lines"):
            for value in (None, -1, [[]], {"x": 1}, [1, 2, -3], 1e300):
                yield f"{key}: {value}", {**description, key: value}
    segment = description["segments"][0]
    for change in (
        {"function": 7}, {"size": 1}, {"flags": 9}, {"steps": [[10**6, -1]]}, {"steps": [[0, 10**6]]},
        {"slots": [[0, "register", "%none", 0, 4, -1, 0]]}, {"slots": [[0, "register", "%r1", 0, 2, -1, 0]]},
        {"slots": [[0, "store", "nowhere 4", 0, 4, -1, 0]]}, {"slots": [[0, "other", "", 0, 1, -1, 0]]},
        {"slots": [[0, "register", "%r1", -8, 4, -1, 0]]}, {"slots": [[0, "register", "%r1", 0, 4, -1, 99]]},
    ):  # fmt: skip
        yield f"segment {change}", {**description, "segments": [{**segment, **change}, *description["segments"][1:]]}


def test_a_description_that_is_wrong_is_refused(content: bytes, tmp_path: Path) -> None:
    description, chunks = taken_apart(content)
    path = tmp_path / "wrong.ptxtrace"
    for what, wrong in wrong_values(description):
        if what in ("without blocks", "without warps", "without lines", "without chains", "without calls"):
            continue  # these are for readers, or are not in older files
        path.write_bytes(put_together(content, (wrong, chunks)))
        with pytest.raises(ptxlab.TraceError, match=r"damaged|cannot be read"):
            pytest.fail(f"{what}: {ptxlab.Trace.open(path)}")


@pytest.mark.parametrize(
    ("name", "most"), [("grid", [2**31 - 1, 65535, 65535]), ("block", [1024, 1024, 64]), ("cluster", [16, 16, 16])]
)
def test_a_launch_is_as_large_as_devices_allow(content: bytes, name: str, most: list[int]) -> None:
    description = taken_apart(content)[0]
    for at in range(3):
        for extent in (0, most[at], most[at] + 1):
            given = [extent if index == at else 1 for index in range(3)]
            wrong = description_problem({**description, name: given})
            assert (wrong is None) == (extent == most[at]), given


def test_a_file_is_not_decompressed_beyond_what_it_declares(content: bytes, tmp_path: Path) -> None:
    """Without a limit a file of a few megabytes becomes gigabytes."""
    path, bomb = tmp_path / "bomb.ptxtrace", zlib.compress(bytes(1 << 28), 1)
    chunk = struct.pack("<IIQQ", 2, zlib.crc32(bomb), 100, len(bomb)) + bomb
    valid = struct.pack("<Q", len(content) + len(chunk))
    described = zlib.compress(b" " * (1 << 28), 1)
    sizes = struct.pack("<QQQII", 48 + len(described), 0, len(described), zlib.crc32(described), 0)
    for data, says in (
        (content[:16] + valid + content[24:] + chunk, "does not have 100 bytes"),
        (content[:16] + sizes + described, "description is not an object"),
    ):
        path.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(ptxlab.TraceError, match=says):
            ptxlab.Trace.open(path)
        assert tracemalloc.get_traced_memory()[1] < 3 << 26
        tracemalloc.stop()


@pytest.mark.parametrize("command", [["debug"], ["lab", "--html", "page.html"]])
def test_commands_show_what_is_wrong_with_a_file(content: bytes, command: list[str], tmp_path: Path) -> None:
    description, chunks = taken_apart(content)
    path = tmp_path / "wrong.ptxtrace"
    path.write_bytes(put_together(content, ({**description, "block": -1}, chunks)))
    shown = CliRunner().invoke(command_line, [command[0], str(path), *command[1:]])
    assert (shown.exit_code, shown.exception.__class__) == (2, SystemExit)
    assert "is damaged: `block` of its description is missing or impossible" in shown.output


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
