"""Memory that PTX asks for is bounded: what is too much is refused before any is allocated."""

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.device import limits
from tests.emulate.launching import kernel, launch, line_of, problem
from tests.processes import run


@pytest.mark.parametrize(
    ("before", "taken", "line"),
    [
        (".global .b8 x[5000000000];\n", "4.7 GiB", ".global .b8 x[5000000000];"),
        (".global .b8 x[1099511627776];\n", "1.0 TiB", ".global .b8 x[1099511627776];"),
        (".global .b8 x[1099511627776] = {1, 2};\n", "1.0 TiB", ".global .b8 x[1099511627776] = {1, 2};"),
        (".global .b8 y[3000000000];\n.global .b8 x[3500000000];\n", "6.1 GiB", ".global .b8 x[3500000000];"),
    ],
)
def test_variables_that_are_too_large(before: str, taken: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available", lambda: 64 << 30)
    names = [name for name in "xy" if f" {name}[" in before]
    found = problem("\n".join(f"ld.global.u8 %r1, [{name}];" for name in names) + "\nret;", before=before)
    assert found.code == "out-of-memory"
    assert found.message == f"`k`: its variables take {taken}, this machine gives them 4.0 GiB at most"
    assert line_of(found) == line


def test_a_machine_with_little_memory_gives_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available", lambda: 1 << 30)
    before = ".global .b8 x[700000000];\n"
    found = problem("ld.global.u8 %r1, [x];\nret;", before=before)
    assert found.message == "`k`: its variables take 667.6 MiB, this machine gives them 512.0 MiB at most"
    assert launch("ld.global.u8 %r1, [x];\nret;", before=before.replace("7", "4")).diagnostics == []


LARGE = """
import re
from pathlib import Path
import numpy as np
from tests.emulate.launching import launch
out = np.zeros(2, np.uint32)
body = '''
ld.param.u64 %rd1, [out];
ld.global.u32 %r1, [x+999999996];
st.global.u32 [x+500000000], 7;
ld.global.u32 %r2, [x+500000000];
st.global.v2.u32 [%rd1], {%r1, %r2};
ret;
'''
print(launch(body, ".u64 out", [out], before=".global .b8 x[1000000000];\\n", on_error="collect").diagnostics, *out)
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is asked of /proc")
def test_a_large_variable_takes_memory_only_where_it_is_written() -> None:
    shown, kilobytes = run(LARGE).splitlines()
    assert shown == "[] 0 7"
    assert int(kilobytes) < 500_000


@pytest.mark.parametrize(
    "body", [".local .b8 x[1099511627776];\nld.local.u32 %r1, [x];", ".param .b8 x[1099511627776];"]
)
def test_local_memory(body: str) -> None:
    message = "`k`: `k` has 1099511627776 bytes of local memory, a thread may have 524288"
    assert problem(body + "\nret;").message == message


def test_shared_memory() -> None:
    found = problem("ret;", shared=1 << 40)
    assert found.message == "`k`: 1099511627776 bytes of shared memory, `sm_80` has 166912 for a block"
    with pytest.raises(ptxlab.PtxError, match="1099511627776 bytes of shared memory"):
        launch("ld.shared.u32 %r1, [x];\nret;", before=".shared .b8 x[1099511627776];\n")


def test_constant_memory() -> None:
    with pytest.raises(ptxlab.PtxError, match="more than 65536 bytes of constant memory"):
        launch("ld.const.u32 %r1, [x];\nret;", before=".const .b8 x[1099511627776];\n")


def test_a_variable_without_a_value_is_zero_and_keeps_what_is_written() -> None:
    out = np.ones(1, np.uint32)
    body = "ld.param.u64 %rd1, [out];\nld.global.u32 %r1, [x];\nst.global.u32 [%rd1], %r1;\nadd.u32 %r1, %r1, 3;\n"
    found = kernel(body + "st.global.u32 [x], %r1;\nret;", ".u64 out", ".global .u32 x;\n")
    for expected in (0, 3, 6):
        found.launch(1, 1, [out], device="cpu")
        assert out[0] == expected
