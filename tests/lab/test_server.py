"""`ptxlab lab`: the page served to this machine alone, or written to a file; what is wrong with what it is given."""

import base64
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import ptxlab
from ptxlab.cli.arguments import parse_argument
from ptxlab.cli.debug import Session
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.lab import Server, Views
from tests.debug.kernels import EXCHANGE
from tests.lab.kernels import launched

ARGUMENTS = ("--block", "64", "--arg", "u32[64]=zeros")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line, arguments)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    views, _, _ = launched("exchange")
    with Server(views, 0) as found:
        found.start()
        yield found
        found.shutdown()


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_text(EXCHANGE)
    return path


def test_answers_are_json(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}data/run") as answer:
        assert json.load(answer)["kernel"] == "k"
    with urllib.request.urlopen(server.url) as answer:
        assert answer.read().startswith(b"<!doctype html>")


def test_several_answers_are_one_request(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}data/steps/0,warps/0/0,warps/x/0") as answer:
        steps, warps, unknown = json.load(answer)
    assert steps == {"found": server.views.get("steps/0")}
    assert [one["warp"] for one in warps["found"]] == [0, 1]
    assert unknown["problem"].startswith("there is no warps/x/0")


def test_two_launches_are_beside_each_other() -> None:
    (left, _, _), (right, _, _) = launched("exchange"), launched("ring")
    with Server(left, 0, right) as server:
        server.start()
        with urllib.request.urlopen(server.url) as answer:
            frames = answer.read().decode()
        kernels = []
        for number in range(2):
            assert f'src="{number}/"' in frames
            with urllib.request.urlopen(f"{server.url}{number}/") as answer:
                assert answer.read().startswith(b"<!doctype html>")
            with urllib.request.urlopen(f"{server.url}{number}/data/run") as answer:
                kernels.append(json.load(answer)["kernel"])
        server.shutdown()
    assert kernels == ["k", "ring"]


def test_two_launches_are_one_file(kernel: Path, tmp_path: Path) -> None:
    trace, html = tmp_path / "next.ptxtrace", tmp_path / "both.html"
    assert run("run", str(kernel), *ARGUMENTS, "--record", str(trace)).exit_code == 0
    assert run("lab", str(kernel), *ARGUMENTS, "--beside", str(trace), "--html", str(html)).exit_code == 0
    assert html.read_text(encoding="utf-8").count("srcdoc=") == 2
    refused = run("lab", str(kernel), *ARGUMENTS, "--beside", str(kernel), "--html", str(html))
    assert refused.exit_code == 2
    assert "k.ptx` is not a recorded launch" in refused.output


def status(url: str, **headers: str) -> int:
    """How a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(url, headers=headers))
    raised.value.close()
    return raised.value.code


def test_there_is_nothing_else(server: Server) -> None:
    host = f"http://127.0.0.1:{server.server_port}/"
    for url in (f"{server.url}data/nothing", f"{server.url}data/steps/x", host, f"{host}wrong/data/run"):
        assert status(url) == 404
    assert status(f"{server.url}data/run", Host="example.com") == 403


def test_what_check_warns_of_is_among_the_findings(kernel: Path) -> None:
    kernel.write_text(EXCHANGE.replace("  bar.sync 0;", "  add.u32 %r7, %r6, 1;"))
    opened = Session(kernel, block=(64,), arguments=[parse_argument("u32[64]=zeros")]).open()
    shown = Views(opened.debugger.trace).get("run")["findings"]
    assert [(one["level"], one["code"]) for one in shown] == [("error", "data-race"), ("warning", "unwritten-register")]


def test_a_file_is_written(kernel: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.html"
    result = run("lab", str(kernel), *ARGUMENTS, "--html", str(path))
    assert result.exit_code == 0
    assert re.fullmatch(r"trace of `k`: .*\n.*k\.html: \d\.\d MB\n", result.stdout)
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    start = text.index('id="embedded">') + len('id="embedded">')
    names = set(json.loads(text[start : text.index("</script>", start)])["names"])
    memory = {"memory/shared/0/0/0", "memory/global/0/0/0"}
    assert {"run", "steps/0", "registers/0/0", "registers/1/0", "timeline/0/0/0", *memory} <= names


@pytest.mark.slow
def test_ctrl_c_ends_it(kernel: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "ptxlab", "lab", str(kernel), *ARGUMENTS, "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("trace of `k`")
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert process.stderr.readline() == "open this address in a browser; Ctrl-C ends it\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert "Traceback" not in process.stderr.read()


def test_a_kernel_of_the_gallery_at_a_size_that_its_variant_can_do() -> None:
    """Its first variant cannot do the first small size; the port is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("lab", "attention_tile", "--port", str(taken.getsockname()[1]))
    assert result.output.startswith("trace of `attention`")


def test_a_browser_that_goes_away(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_port)) as browser:
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
            browser.sendall(f"GET /{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


def test_a_port_in_use(kernel: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("lab", str(kernel), *ARGUMENTS, "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 2
    assert "cannot be served: address already in use; leave `--port` out for a free one" in result.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"ELF", "is not a recorded launch of ptxlab"), (b"ptxtrace\1\0\0\0", "is truncated: its header is not whole")],
)
def test_a_foreign_or_damaged_trace(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "run.ptxtrace"
    path.write_bytes(content)
    result = run("lab", str(path))
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch.ptx"], "there is no file `nosuch.ptx`"),
        (["."], "`.` is a directory"),
        (["mma_tle"], "there is no file or kernel `mma_tle`; did you mean `mma_tile`?"),
        (["mma_tile", "--variant", "none"], "`mma_tile` has no variant `none`"),
        (["mma_tile", "--arg", "u32=1"], "`mma_tile` is of the gallery, which has its arguments"),
    ],
)
def test_what_cannot_be_shown(arguments: list[str], says: str) -> None:
    result = run("lab", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_file_that_has_changed_since(kernel: Path, tmp_path: Path) -> None:
    trace = tmp_path / "k.ptxtrace"
    assert run("run", str(kernel), *ARGUMENTS, "--record", str(trace)).exit_code == 0
    assert Views(ptxlab.Trace.open(trace)).get("run")["remarks"] == []
    kernel.write_text(EXCHANGE + "// changed\n")
    (remark,) = Views(ptxlab.Trace.open(trace)).get("run")["remarks"]
    assert remark.endswith("k.ptx has changed since this launch was recorded; the recorded text is shown")


def embedded(path: Path) -> dict[str, Any]:
    """The first answers of a page in a file."""
    (text,) = re.findall(r'id="embedded">(.*?)</script>', path.read_text(), re.DOTALL)
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(json.loads(text)["parts"][0])))
    return found


def test_a_page_has_source_of_the_kernels_folder_alone(tmp_path: Path) -> None:
    """PTX can name any file; one that it asks to be shown must not reach a page that is sent to someone else."""
    folder, secret = tmp_path / "kernel", tmp_path / "secret.txt"
    folder.mkdir()
    secret.write_text("private\n")
    (folder / "linked.txt").symlink_to(secret)
    (folder / "own.cu").write_text("own source\n")
    names = [str(folder / "own.cu"), str(secret), str(folder / "linked.txt"), str(folder / "../secret.txt")]
    files = "".join(f'.file {number} "{name}"\n' for number, name in enumerate(names, 1))
    lines = "".join(f"    .loc {number} 1 1\n    mov.u32 %r1, {number};\n" for number in range(1, 5))
    (folder / "k.ptx").write_text(
        f".version 8.0\n.target sm_80\n.address_size 64\n{files}"
        f".visible .entry k()\n{{\n    .reg .b32 %r<2>;\n{lines}    ret;\n}}\n"
    )
    page = tmp_path / "page.html"
    command = ["lab", str(folder / "k.ptx"), "--block", "1", "--html", str(page)]
    assert run(*command).exit_code == 0
    shown = embedded(page)["run"]
    assert [(one["file"], one["text"]) for one in shown["sources"]] == [(names[0], "own source\n")]
    (remark,) = shown["remarks"]
    assert remark.startswith("not shown, since the kernel's folder does not have it: ")
    assert all(name in remark for name in names[1:])
    assert run(*command, "--sources", str(tmp_path)).exit_code == 0
    shown = embedded(page)["run"]
    assert (sorted(one["file"] for one in shown["sources"]), shown["remarks"]) == (sorted(names), [])


def test_only_the_scripts_of_the_page_run(server: Server) -> None:
    with urllib.request.urlopen(server.url) as answer:
        page = answer.read().decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("; style-src")[0]
    scripts = re.findall(r'<script type="(?:importmap|module)">(.*?)</script>', page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert len(hashes) == 2
    assert all(f"'sha256-{one}'" in policy for one in hashes)


def test_text_of_a_kernel_is_not_markup(tmp_path: Path) -> None:
    """Neither in its name nor in its lines, in the page and in SARIF."""
    hostile = "</script><img src=x onerror=alert(1)>"
    path = tmp_path / "<img src=x onerror=alert(1)>.ptx"
    path.write_text(
        f'// {hostile}\n.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "{hostile}"\n'
        ".visible .entry k()\n{\n    .reg .b32 %r;\n    .loc 1 1 1\n    mov.u32 %r, 0;\n    ret;\n}\n"
    )
    page = tmp_path / "page.html"
    assert run("lab", str(path), "--block", "1", "--html", str(page)).exit_code == 0
    text = page.read_text()
    assert ("<img" in text, text.count("</script>")) == (False, 3)
    assert embedded(page)["run"]["text"].startswith(f"// {hostile}")
    path.write_text(path.read_text().replace("mov.u32", "mvo.u32"))
    (finding,) = json.loads(run("check", "--format", "sarif", str(path)).stdout)["runs"][0]["results"]
    where = finding["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert ("%3Cimg" in where, "<" in where) == (True, False)
