"""Bulk copies, tensor memory and waits as the page is given them."""

import base64
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.lab import Views
from tests.lab.kernels import TILE, launched
from tests.lab.reading import memory_at


def test_a_box_fills_shared_memory_by_its_swizzle() -> None:
    views, _, _ = launched("box")
    (listed,) = views.get("copies/0")
    copy = views.get(f"copy/0/{listed['number']}")
    assert (copy["at"], copy["sizes"], copy["box"]) == ([24, 16], [32, 32], [32, 32])
    assert (copy["type"], copy["swizzle"], copy["rows"][:2], copy["first"]) == ("f32", "128B", ["24", "25"], 16)
    expected = [128 * row + 16 * (chunk ^ row % 8) for row in range(32) for chunk in range(8)]
    assert copy["addresses"] == expected
    inside = [16 if row < 8 and chunk < 4 else 0 for row in range(32) for chunk in range(8)]
    assert copy["filled"] == inside
    shared = memory_at(views, "shared", 0, 0, views.steps.count).view(np.float32)
    for index in np.flatnonzero(inside).tolist():
        row, column = 24 + index // 8, 16 + 4 * (index % 8)
        assert shared[expected[index] // 4 :][:4].tolist() == TILE[row, column : column + 4].tolist()


def test_a_box_arrives_at_its_mbarrier() -> None:
    views, _, _ = launched("box")
    copy = views.get("copy/0/0")
    barrier = copy["barrier"]
    assert (barrier["name"], barrier["phase"], barrier["bytes"]) == ("full", 0, 4096)
    assert copy["step"] <= copy["landed"] <= barrier["complete"] <= barrier["seen"][1]


def words_after(views: Views, block: int, step: int) -> Any:
    """All words of tensor memory, those that are not known masked."""
    given = views.get(f"words/{block}/{step}")
    known, data = (base64.b64decode(given[name]) for name in ("known", "data"))
    columns = slice(given["column"], given["column"] + given["columns"])
    found = np.ma.masked_all((128, 512), np.uint32)
    bits = np.unpackbits(np.frombuffer(known, np.uint8), bitorder="little")[: 128 * given["columns"]]
    values = np.frombuffer(data, np.uint32).reshape(128, -1)
    found[:, columns] = np.ma.array(values, mask=bits.reshape(values.shape) == 0)
    return found


def test_words_of_tensor_memory_are_those_that_warps_store_and_load() -> None:
    views, _, _ = launched("tensor words")
    uses = views.get("tensor/0")
    stores = [one for one in uses if one["kind"] == "stores"]
    assert len(stores) == 4 * 8
    last = words_after(views, 0, stores[-1]["step"])
    assert last[:, :8].tolist() == [[lane] * 8 for lane in range(128)]
    assert last[:, 8:].mask.all()
    before = words_after(views, 0, uses[0]["step"])
    assert before.mask.all()
    graph = views.get(f"origin/tensor/0/5/3/{views.steps.count}")
    assert "%t of thread 5" in [node["what"] for node in graph["nodes"]]


def test_partial_sums_are_known_between_mmas() -> None:
    views, result, _ = launched("partial sums")
    assert not result.diagnostics
    first, second = (one["step"] for one in views.get("tensor/0") if one["kind"] == "multiplies")
    for step, expected in ((first, 16 * 1.0), (second - 1, 16 * 1.0), (second, 16 * 1.0 + 16 * 4.0)):
        words = words_after(views, 0, step)
        assert words[:, 16:].mask.all()
        assert not np.ma.getmaskarray(words[:, :16]).any()
        assert (words[:, :16].compressed().view(np.float32) == expected).all()


@pytest.mark.parametrize("name", ["partial sums", "negated predicate"])
def test_the_second_mma_adds_to_the_first(name: str) -> None:
    views, result, _ = launched(name)
    assert not result.diagnostics
    for number, step in enumerate(one["step"] for one in views.get("tensor/0") if one["kind"] == "multiplies"):
        first, *others = views.get(f"origin/tensor/0/3/2/{step + 1}")["nodes"]
        sources = [others[at - 1]["what"] for at in first["sources"]]
        assert ("tensor memory of block 0, lane 3, column 2" in sources) == (number > 0)


@pytest.mark.bulk
@pytest.mark.parametrize("variant", ["one_tile", "pair"])
def test_words_of_products_are_those_of_the_recording(variant: str) -> None:
    from ptxlab import kernels
    from ptxlab.measure import Host

    entry = kernels.entry("tcgen05_gemm")
    *_, launch = entry.launches(variant, entry.arrays(Host(0), **entry.small[0]))
    trace = launch.run(device="cpu", record=ptxlab.Record()).trace
    assert trace is not None
    views = Views(trace)
    for step, executed, _ in trace.tensor_words.uses(0)[::5]:
        found, expected = words_after(views, 0, step), trace.tensor_memory(step=executed.key // 2, type="u32")
        assert (np.ma.getmaskarray(found) == np.ma.getmaskarray(expected)).all()
        assert (found.filled(0) == expected.filled(0)).all()


@pytest.mark.bulk
def test_partial_sums_are_those_of_numpy() -> None:
    from ptxlab import kernels
    from ptxlab.measure import Host

    entry = kernels.entry("tcgen05_gemm")
    arrays = entry.arrays(Host(0), **entry.small[0])
    *_, launch = entry.launches("one_tile", arrays)
    trace = launch.run(device="cpu", record=ptxlab.Record()).trace
    assert trace is not None
    views = Views(trace)
    a, b = (np.asarray(arrays[name], np.float64) for name in ("a", "b"))
    steps = [one["step"] for one in views.get("tensor/0") if one["kind"] == "multiplies"]
    assert len(steps) == 16  # K is padded to 256
    for number, step in enumerate(steps, 1):
        words = words_after(views, 0, step)
        columns = np.flatnonzero(~np.ma.getmaskarray(words).all(axis=0))
        found = words[:, columns].filled(0).view(np.float32)
        expected = a[:128, : 16 * number] @ b[: len(columns), : 16 * number].T
        assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_hang_says_which_warps_wait_for_what() -> None:
    views, _, _ = launched("hang")
    waits = {one["name"]: one["waits"][-1] for one in views.get("barriers/0/0") if one["waits"]}
    count = views.steps.count
    assert waits["full+8"][0:1] + waits["full+8"][2:] == [1, count, 53, 0]
    assert waits["empty+8"][0:1] + waits["empty+8"][2:] == [0, count, 33, 0]


STUCK = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
  .reg .b32 %t; .reg .pred %p;
  mov.u32 %t, %tid.x;
  setp.ge.u32 %p, %t, 32;
  @%p bra end;
  bar.sync 1, 64;
end:
  @!%p ret;
  bar.sync 2, 64;
  ret;
}
"""
LOOP = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %t, %i, %v; .reg .pred %p; .reg .b64 %at, %to;
  .shared .align 4 .b32 s[8];
  mov.u32 %t, %tid.x;
  mov.u32 %i, 0;
  mov.b64 %at, s;
  setp.ne.u32 %p, %t, 0;
  @%p bra read;
store:
  st.shared.u32 [%at], %i;
  add.u32 %i, %i, 1;
  add.u64 %at, %at, 4;
  setp.lt.u32 %p, %i, 6;
  @%p bra store;
  ret;
read:
  setp.ne.u32 %p, %t, 32;
  @%p ret;
  ld.shared.u32 %v, [%at+16];
  ld.param.u64 %to, [c];
  st.global.u32 [%to], %v;
  ret;
}
"""


def recorded(text: str, arguments: list[Any]) -> Views:
    kernel = ptxlab.parse(text, name="k.ptx")["k"]
    trace = kernel.launch(1, 64, arguments, device="cpu", on_error="collect", record=ptxlab.Record()).trace
    assert trace is not None
    return Views(trace)


def test_a_barrier_that_never_completes_says_who_waits() -> None:
    views = recorded(STUCK, [])
    waits = {one["name"]: [(wait[0], wait[2]) for wait in one["waits"]] for one in views.get("barriers/0/0")}
    assert waits == {"barrier 1": [(0, views.steps.count)], "barrier 2": [(1, views.steps.count)]}


def test_the_time_of_an_access_is_that_of_its_bytes() -> None:
    views = recorded(LOOP, [np.zeros(1, np.uint32)])
    (finding,) = views.get("run")["findings"]
    (store,) = [one["step"] for one in finding["accesses"] if one["line"] == 13]
    assert store == views.get("line/13")["steps"][4]  # the fifth time, which writes what is read


def test_a_kernel_in_python_has_its_lines() -> None:
    views, _, _ = launched("python")
    info = views.get("run")
    assert info["sources"][0]["file"].endswith("tests/lab/kernels.py")
    (finding,) = info["findings"]
    lines = {one["line"]: one["sources"][0][1] for one in info["instructions"] if "sources" in one}
    text = info["sources"][0]["text"].split("\n")
    assert {text[lines[one["line"]] - 1].strip() for one in finding["accesses"]} == {
        "slots[ptx.tid.x] = ptx.tid.x",
        "out[ptx.tid.x] = slots[ptx.tid.x ^ 32]",
    }
