"""Bulk copies: what they move, when it is seen, and what is said of those that cannot be or never come."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Diagnostic

HEAD = """.version 9.2
.target sm_100
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<16>, %t, %n, %own;
    .reg .b64 %rd<8>, %x, %y;
    .shared .align 128 .b8 tile[4096];
    .shared .align 128 .b8 other[4096];
    .shared .align 8 .b64 full;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %r15, tile;
    mad.lo.u32 %own, %t, 4, %r15;
    setp.ne.u32 %p1, %t, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    bar.sync 0;
"""
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
EXCHANGE = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
EXPECT = "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};\n"
WAIT = """
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra wait;
"""
END = "@!%p1 cp.async.bulk.commit_group;\n@!%p1 cp.async.bulk.wait_group 0;\n"
FENCED = "fence.proxy.async;\nbar.sync 0;\n"


def run(
    body: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], n: int = 0, *, seed: int = 0, block: int = 64
) -> tuple[list[Diagnostic], dict[str, Any]]:
    """What is wrong, and what was counted."""
    module = ptxlab.parse(f"{HEAD}{body}\n    ret;\n}}\n", name="k.ptx")
    how: dict[str, Any] = {"device": "cpu", "timeout": 20, "on_error": "collect", "seed": seed}
    result = module["k"].launch(1, block, [x, y, n], **how)
    return result.diagnostics, result.counters


def words(count: int = 1024, start: int = 1) -> np.ndarray[Any, Any]:
    return np.arange(start, start + count, dtype=np.uint32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("space", ["cluster", "cta"])
def test_there_and_back(seed: int, space: str) -> None:
    x, y = words(), np.zeros(1024, np.uint32)
    load = LOAD.replace("cluster", space)
    body = EXPECT.format(4096) + f"@!%p1 {load} [tile], [%x], 4096, [full];" + WAIT
    body += f"@!%p1 {STORE} [%y], [tile], %n;\n" + END
    found, counters = run(body, x, y, 2048, seed=seed)
    assert found == []
    assert (y[:512] == x[:512]).all()
    assert not y[512:].any()
    assert counters["bytes"]["global"] == {"read": 4096, "written": 2048}


def test_several_copies_complete_on_one_barrier() -> None:
    x, y = words(), np.zeros(1024, np.uint32)
    parts = "\n".join(
        f"@!%p1 {LOAD} [tile+{at}], [%x+{4096 - 1024 - at}], 1024, [full];" for at in range(0, 4096, 1024)
    )
    body = EXPECT.format(4096) + parts + WAIT + f"@!%p1 {STORE} [%y], [tile], 4096;\n" + END
    for seed in range(4):
        assert run(body, x, y, seed=seed)[0] == []
        assert (y.reshape(4, 256) == x.reshape(4, 256)[::-1]).all()
        y[:] = 0


@pytest.mark.parametrize("source", ["tile", "%r15"])
def test_within_shared_memory(source: str) -> None:
    x, y = words(), np.zeros(1024, np.uint32)
    body = f"""
    st.shared.u32 [%own], %t;
    {FENCED}
    {EXPECT.format(256)}
    @!%p1 {EXCHANGE} [other], [{source}], 256, [full];
    {WAIT}
    @!%p1 {STORE} [%y], [other], 256;
    {END}"""
    assert run(body, x, y)[0] == []
    assert (y[:64] == np.arange(64)).all()


def test_only_some_bytes() -> None:
    """`.cp_mask` has a bit for each byte of every 16, `.ignore_oob` lets both ends be anywhere."""
    x, y = words(16), np.zeros(16, np.uint32)
    load = LOAD.replace("cluster", "cta") + ".ignore_oob"
    body = EXPECT.format(64) + f"@!%p1 {load} [tile], [%x], 64, 4, 8, [full];" + WAIT
    assert run(body + f"@!%p1 {STORE} [%y], [tile], 64;\n" + END, x, y)[0] == []
    assert (y[1:14] == x[1:14]).all()
    body = EXPECT.format(64) + f"@!%p1 {LOAD} [tile], [%x], 64, [full];" + WAIT
    assert run(body + f"@!%p1 {STORE}.cp_mask [%y], [tile], 64, 0xF00F;\n" + END, x, y := np.zeros_like(y))[0] == []
    assert (y == np.where(np.arange(16) % 4 % 3 == 0, x, 0)).all()


def test_the_edges_of_an_array_may_be_ignored() -> None:
    x, y = words(18)[1:], np.zeros(16, np.uint32)
    load = LOAD.replace("cluster", "cta")
    body = EXPECT.format(80) + f"@!%p1 {load}.ignore_oob [tile], [%x], 80, 0, {{}}, [full];" + WAIT
    assert run(body.format(12), x, y)[0] == []
    (found,) = run(body.format(8), x, y)[0]
    assert (found.code, found.message) == ("out-of-bounds", "read of 72 bytes outside of argument 0 (`x`)")


REDUCTIONS = [
    ("add.u32", np.uint32), ("add.s32", np.int32), ("add.u64", np.uint64), ("add.f32", np.float32),
    ("add.f64", np.float64), ("add.noftz.f16", np.float16), ("min.u32", np.uint32), ("max.s32", np.int32),
    ("min.u64", np.uint64), ("max.s64", np.int64), ("inc.u32", np.uint32), ("dec.u32", np.uint32),
    ("and.b32", np.uint32), ("or.b32", np.uint32), ("xor.b64", np.uint64), ("min.f16", np.float16),
    ("max.f16", np.float16),
]  # fmt: skip


def reduced(name: str, old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    operation = name.partition(".")[0]
    if operation == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    known = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}
    return known.get(operation, np.bitwise_xor)(old, new)


def some(type: Any, seed: int) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(seed).integers(-50 if np.dtype(type).kind != "u" else 0, 50, 64)
    return values.astype(type)


@pytest.mark.parametrize(("name", "type"), REDUCTIONS)
def test_reductions_into_global_memory(name: str, type: Any) -> None:
    x, y = some(type, 1), some(type, 2)
    expected = reduced(name, y, x)
    body = EXPECT.format(x.nbytes) + f"@!%p1 {LOAD} [tile], [%x], {x.nbytes}, [full];" + WAIT
    body += f"@!%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [%y], [tile], {x.nbytes};\n" + END
    assert run(body, x, y)[0] == []
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", ["add.u32", "min.s32", "inc.u32", "xor.b32", "add.u64"])
def test_reductions_into_shared_memory(name: str) -> None:
    type = np.dtype({"u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64}[name[-3:]])
    x, y = some(type, 3), some(type, 4)
    expected = reduced(name, y, x)
    reduce = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    size = x.nbytes
    body = EXPECT.format(2 * size) + f"@!%p1 {LOAD} [tile], [%x], {size}, [full];\n"
    body += f"@!%p1 {LOAD} [other], [%y], {size}, [full];" + WAIT + EXPECT.format(size)
    body += f"@!%p1 {reduce}.{name} [other], [tile], {size}, [full];\n"
    body += WAIT.replace("wait:", "again:").replace("bra wait", "bra again").replace("[full], 0", "[full], 1")
    assert run(body + f"@!%p1 {STORE} [%y], [other], {size};\n" + END, x, y)[0] == []
    np.testing.assert_array_equal(y, expected)


def reduced_patterns(name: str, old: list[int], new: list[int], type: Any) -> list[int]:
    """What becomes of bit patterns that are reduced."""
    x, y = np.resize(np.array(new, type), 64), np.resize(np.array(old, type), 64)
    body = EXPECT.format(x.nbytes) + f"@!%p1 {LOAD} [tile], [%x], {x.nbytes}, [full];" + WAIT
    body += f"@!%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [%y], [tile], {x.nbytes};\n" + END
    assert run(body, x, y)[0] == []
    return [int(word) for word in y[: len(old)]]


def test_subnormal_numbers_and_nans() -> None:
    """As an H200 has them: sums of f32 are not flushed, and of two NaNs one becomes that has all bits set."""
    old, new = [0x513254, 0x16A86E, 0x801E1C75], [0x803EC2F8, 0x6D1A93, 0x1F9D05]
    assert reduced_patterns("add.f32", old, new, np.uint32) == [0x126F5C, 0x83C301, 0x18090]
    for name in ("min.f16", "max.f16"):
        assert reduced_patterns(name, [0xFF72, 0xFF72], [0x7C14, 0x3C00], np.uint16) == [0x7FFF, 0x3C00]
    assert reduced_patterns("min.bf16", [0x7F89, 0x3F80], [0x7FC2, 0x7FC2], np.uint16) == [0x7FFF, 0x3F80]


def test_blocks_that_reduce_to_the_same_place() -> None:
    x, y = words(4), np.zeros(4, np.uint32)
    body = EXPECT.format(16) + f"@!%p1 {LOAD} [tile], [%x], 16, [full];" + WAIT
    body += "@!%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%y], [tile], 16;\n" + END
    module = ptxlab.parse(f"{HEAD}{body}\n    ret;\n}}\n", name="k.ptx")
    module["k"].launch(50, 32, [x, y, 0], device="cpu", timeout=20)
    assert (y == 50 * x).all()


# When it is seen.


@pytest.mark.parametrize("seed", range(3))
def test_what_no_thread_waited_for_is_stale(seed: int) -> None:
    """A thread that does not wait reads stale data, in every run, and this is reported."""
    x, y = words(), np.zeros(1024, np.uint32)
    body = "st.shared.u32 [%own], 7;\nbar.sync 0;\n" + EXPECT.format(256) + f"@!%p1 {LOAD} [tile], [%x], 256, [full];"
    read = "ld.shared.u32 %r1, [%own];\nmad.wide.u32 %rd1, %t, 4, %y;\nst.global.u32 [%rd1], %r1;\n"
    found, _ = run(body + "\nbar.sync 0;\n" + read, x, y, seed=seed)
    assert {diagnostic.code for diagnostic in found} == {"data-race", "missing-proxy-fence"}
    assert (y[:64] == 7).all()
    assert run(body.replace("7;\n", "7;\nfence.proxy.async;\n") + WAIT + read, x, y, seed=seed)[0] == []
    assert (y[:64] == x[:64]).all()


@pytest.mark.parametrize(
    ("wait", "seen"), [("wait_group 0", True), ("wait_group.read 0", False), ("wait_group 1", False)]
)
def test_a_store_is_seen_after_its_group(wait: str, seen: bool) -> None:
    x, y = words(), np.zeros(1024, np.uint32)
    body = f"""
    st.shared.u32 [%own], 5;
    {FENCED}
    @%p1 bra end;
    {STORE} [%y], [tile], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.{wait};
    ld.global.u32 %r1, [%y];
    st.global.u32 [%x], %r1;
end:
"""
    found, _ = run(body, x, y)
    assert {diagnostic.code for diagnostic in found} == (set() if seen else {"data-race"})
    assert x[0] == (5 if seen else 0)
    assert (y[:64] == 5).all()


def test_the_source_may_be_overwritten_once_it_is_read() -> None:
    body = f"""
    st.shared.u32 [%own], 5;
    {FENCED}
    @!%p1 {STORE} [%y], [tile], 256;
    @!%p1 cp.async.bulk.commit_group;
    @!%p1 cp.async.bulk.{{}};
    bar.sync 0;
    st.shared.u32 [%own], 6;
"""
    x, y = words(), np.zeros(1024, np.uint32)
    assert run(body.format("wait_group.read 0"), x, y)[0] == []
    assert (y[:64] == 5).all()
    (found,) = run(body.format("wait_group.read 1"), x, y)[0]
    assert found.message == "a thread writes shared memory that a copy still reads"
    assert found.labels[1].text == "thread (0,0,0) of block (0,0,0) started a copy that reads bytes 252..256 of `tile`"
    assert (y[:64] == 6).all()


# What cannot be.


@pytest.mark.parametrize(
    ("copy", "n", "code", "message"),
    [
        (f"{LOAD} [tile], [%x], %n, [full];", 24, "misaligned-access", f"`{LOAD}` of 24 bytes, not a multiple of 16"),
        (f"{LOAD} [tile+8], [%x], 16, [full];", 0, "misaligned-access",
         "write of 16 bytes at address 0x8, not a multiple of 16"),
        (f"{LOAD} [tile], [%x], 16, [tile];", 0, "bad-barrier",
         "the mbarrier `tile` is not initialized"),
        (f"{LOAD} [tile], [%x], %n, [full];", 8192, "out-of-bounds", "read of 8192 bytes outside of argument 0 (`x`)"),
        (f"{LOAD} [other+2048], [%x], 4096, [full];", 0, "out-of-bounds", None),
        (f"{STORE} [%y], [tile], %n;", 40, "misaligned-access", f"`{STORE}` of 40 bytes, not a multiple of 16"),
        (f"{STORE} [%y+4080], [tile], 32;", 0, "out-of-bounds", "write of 32 bytes outside of argument 1 (`y`)"),
        (f"{STORE} [%y+8], [tile], 32;", 0, "misaligned-access", None),
        (f"{EXCHANGE} [other], [tile+8], 16, [full];", 0, "misaligned-access", None),
        ("cp.async.bulk.prefetch.L2.global [%x+8], 16;", 0, "misaligned-access", None),
        ("cp.async.bulk.prefetch.L2.global [%x], %n;", 8, "misaligned-access", None),
    ],
)  # fmt: skip
def test_copies_that_cannot_be(copy: str, n: int, code: str, message: str | None) -> None:
    found = [d for d in run(f"@!%p1 {copy}", words(), words(), n)[0] if d.level == "error"]
    assert [diagnostic.code for diagnostic in found] == [code]
    assert message is None or found[0].message == message


def test_a_read_only_array() -> None:
    x, y = words(), words()
    y.flags.writeable = False
    found = [d for d in run(f"@!%p1 {STORE} [%y], [tile], 16;", x, y)[0] if d.level == "error"]
    assert [diagnostic.code for diagnostic in found] == ["read-only-write"]


def test_a_prefetch_changes_nothing() -> None:
    assert run("@!%p1 cp.async.bulk.prefetch.L2.global [%x], 4096;", words(), words())[0] == []


# Hangs.


def hang(body: str) -> Diagnostic:
    (found,) = run(body, words(), words())[0]
    assert found.code == "hang"
    return found


def test_a_copy_that_never_comes() -> None:
    found = hang(EXPECT.format(4096) + WAIT)
    assert found.message == "64 threads wait on an mbarrier phase that never completes"
    assert found.notes[0].startswith("phase 0: 1 of 1 arrivals (line 22, thread 0), 0 of 4096 bytes; ")
    assert found.helps[0].text == "start a copy of that many bytes that signals this mbarrier, or expect no bytes"


def test_a_copy_of_too_few_bytes() -> None:
    copies = f"@!%p1 {LOAD} [tile], [%x], 1024, [full];\n@!%p1 {LOAD} [tile+1024], [%x], 1024, [full];"
    found = hang(EXPECT.format(4096) + copies + WAIT)
    assert "2048 of 4096 bytes" in found.notes[0]
    assert "this copy and 1 before it (line 23) brought 2048 bytes in this phase" in [
        label.text for label in found.labels
    ]
    assert found.helps[0].text == "expect as many bytes as the copies bring, or start the missing copy"
    assert run(EXPECT.format(2048) + copies + WAIT, words(), words())[0] == []


def test_a_copy_of_too_many_bytes() -> None:
    found = hang(EXPECT.format(1024) + f"@!%p1 {LOAD} [tile], [%x], 4096, [full];" + WAIT)
    assert "4096 bytes came where 1024 are expected" in found.notes[0]
    assert "one copy brought 4096 bytes in this phase" in [label.text for label in found.labels]
