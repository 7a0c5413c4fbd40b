"""Files that are not PTX get an explanation, not a traceback."""

import os
import threading
from pathlib import Path

import pytest

from ptxlab.report import PtxError
from ptxlab.syntax import files, load, parse

GOOD = ".version 8.0\n.target sm_80\n.entry k { ret; }\n"


def test_path_or_text(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(GOOD)
    assert load(path).entries == load(str(path)).entries == ["k"]


def test_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert load(path) == load(path)
    assert load(path).entries == ["k"]


@pytest.mark.parametrize(
    ("data", "code", "word"),
    [
        (b"", "missing-version", "empty"),
        (b"\x7fELF\x02\x01\0\0\0", "binary-file", "cubin"),
        (b"\x50\xed\x55\xba\0\0", "binary-file", "fat binary"),
        (b"abc\0def", "binary-file", "binary"),
        (b".version 8.0\n.target sm_80\n\0", "binary-file", "ends with a NUL character"),
        (GOOD.encode("utf-16"), "utf16-file", "UTF-16"),
        (GOOD.encode("utf-16-le"), "utf16-file", "UTF-16"),
        (b"// \xe9\n" + GOOD.encode(), "non-ascii-character", "ASCII"),
        ("// \u00e9\n".encode() + GOOD.encode(), "non-ascii-character", "ASCII"),
        (b"\xef\xbb\xbf" + GOOD.encode(), "non-ascii-character", "ASCII"),
    ],
)
def test_no_ptx(tmp_path: Path, data: bytes, code: str, word: str) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(data)
    with pytest.raises(PtxError) as raised:
        load(path)
    (found,) = raised.value.diagnostics
    assert found.code == code
    assert word in found.message
    assert found.helps


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.ptx", "missing-file"), (tmp_path, "is-a-directory")):
        with pytest.raises(PtxError) as raised:
            load(path)
        assert [found.code for found in raised.value.diagnostics] == [code]
    with pytest.raises(PtxError):
        load("a\0b")


@pytest.mark.parametrize("text", [GOOD, GOOD * 100])
def test_text_is_not_a_path(text: str) -> None:
    with pytest.raises(PtxError) as raised:
        load(text)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("missing-file", f"there is no file `{GOOD.splitlines()[0]} …`")
    assert "`ptxlab.parse`" in found.helps[0].text


def code_of(path: Path) -> str:
    with pytest.raises(PtxError) as raised:
        load(path)
    (found,) = raised.value.diagnostics
    assert found.helps
    assert found.code in files.UNREADABLE
    return found.code


def test_a_file_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(Path("/dev/zero")) == "binary-file"
    monkeypatch.setattr(files, "LARGEST", 1 << 20)
    path = tmp_path / "k.ptx"
    path.write_text(GOOD + "// more\n" * 200_000)
    assert code_of(path) == "oversized-file"


def test_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    assert code_of(path) == "silent-pipe"
    monkeypatch.setattr(files, "PATIENCE", 30)
    writer = threading.Thread(target=path.write_text, args=(GOOD,))
    writer.start()
    assert load(path).entries == ["k"]
    writer.join()


def test_a_text_as_nvrtc_returns_it() -> None:
    assert parse(GOOD + "\0").entries == ["k"]
