"""Chains of grids: each may start before the one before it is complete, and must wait for what that one does."""

import ctypes

import numpy as np
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.author import Kernel, b8, b64, kernel, pointer, ptx, s32, tensor_map, u32
from ptxlab.toolchain import assemble, disassemble
from tests.gpu.conftest import fake  # noqa: F401 - a fixture
from tests.gpu.driver_of_python import Driver
from tests.tools import header, needs_nvdisasm

LAUNCH, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
LEADER_WAITS = """setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    griddepcontrol.wait;
after:
    bar.sync 0;"""


def grid(name: str, first: str = "", then: str = "") -> ir.Function:
    """`y[i] = x[i] + 1`, with something before the load and something before the store."""
    text = f"""{header("8.0", "sm_90")}
.visible .entry {name}(.param .u64 x, .param .u64 y)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    {first}
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    {then}
    st.global.u32 [%rd2], %r2;
    ret;
}}
"""
    return ptxlab.parse(text, name=f"{name}.ptx")[name]


def arrays(count: int = 3) -> list[np.ndarray]:
    return [np.arange(64, dtype=np.uint32), *(np.zeros(64, np.uint32) for _ in range(count - 1))]


def findings(*grids: object, **how: object) -> list[ptxlab.Diagnostic]:
    return [found for result in ptxlab.launch_chain(*grids, device="cpu", on_error="collect", **how)
            for found in result.diagnostics]  # fmt: skip


@pytest.mark.parametrize("first", [WAIT, LEADER_WAITS], ids=["all wait", "one waits"])
def test_a_grid_that_waits_is_silent(first: str) -> None:
    x, y, z = arrays()
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", first), 1, 64, [y, z]), seeds=2) == []
    assert (z == x + 2).all()


@pytest.mark.parametrize(("first", "then"), [("", ""), ("", WAIT)])
def test_a_read_before_the_wait_is_a_race(first: str, then: str) -> None:
    x, y, z = arrays()
    (found,) = findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", first, then), 1, 64, [y, z]))
    assert found.message == "a grid reads global memory that the grid before it writes, before `griddepcontrol.wait`"
    assert [(label.span.source.name, label.span.text) for label in found.labels] == [
        ("b.ptx", "ld.global.u32 %r2, [%rd1];"),
        ("a.ptx", "st.global.u32 [%rd2], %r2;"),
    ]


def non_coherent(name: str, first: str) -> ir.Function:
    text = ptxlab.format(grid(name, first).module).replace("ld.global.u32", "ld.global.nc.u32")
    return ptxlab.parse(text, name=f"{name}.ptx")[name]


@pytest.mark.parametrize("first", ["", WAIT], ids=["before the wait", "after it"])
def test_a_non_coherent_load_of_what_the_grid_before_writes_is_a_race(first: str) -> None:
    x, y, z = arrays()
    (found,) = findings((grid("a", LAUNCH), 1, 64, [x, y]), (non_coherent("b", first), 1, 64, [y, z]))
    assert found.message == "a load through the non-coherent cache of global memory that the grid before it writes"
    assert "`.nc` is for memory that nothing writes while a kernel runs" in found.notes[0]
    assert [help.text for help in found.helps] == [
        "`ld.global` without `.nc`, after `griddepcontrol.wait`",
        "in CUDA C++, a pointer that is not `const __restrict__`, and no `__ldg`",
    ]
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (non_coherent("b", first), 1, 64, [x, z])) == []
    assert findings((grid("a"), 1, 64, [x, y]), (non_coherent("b", first), 1, 64, [y, z])) == []


@needs_nvdisasm
@pytest.mark.parametrize("load", ["ld.global.nc", "ld.global"])
def test_ptxas_moves_loads_that_are_not_coherent_above_the_wait(load: str) -> None:
    first = "setp.gt.u32 %p1, %r1, 3; ld.global.u32 %r2, [%rd2]; setp.ne.u32 %p1, %r2, 0; @%p1 griddepcontrol.wait;"
    text = ptxlab.format(grid("b", first).module).replace("ld.global.u32 %r2, [%rd1]", f"{load}.u32 %r1, [%rd1]")
    (function,) = disassemble(assemble(text.replace("add.u32 %r2, %r2, 1", "add.u32 %r2, %r2, %r1")).cubin)
    opcodes = [one.opcode for one in function.instructions]
    wait, loads = opcodes.index("ACQBULK"), [at for at, one in enumerate(opcodes) if one.startswith("LDG")]
    assert (max(loads) < wait) == (load == "ld.global.nc")


def test_a_write_before_the_wait_of_what_is_read_is_a_race() -> None:
    x, y, z = arrays()
    (found,) = findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b"), 1, 64, [z, x]))
    assert found.message == "a grid writes global memory that the grid before it reads, before `griddepcontrol.wait`"
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", "", WAIT), 1, 64, [z, x])) == []


def test_grids_that_share_nothing_need_no_wait() -> None:
    x, y, z, w = arrays(4)
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b"), 1, 64, [x, w])) == []
    assert (w == y).all()
    assert not z.any()


@pytest.mark.parametrize(
    ("first", "options"), [("", {}), (LAUNCH, {"overlap": False})], ids=["nothing launched", "no overlap"]
)
def test_a_grid_that_starts_when_the_one_before_is_complete(first: str, options: dict[str, object]) -> None:
    x, y, z = arrays()
    assert findings((grid("a", first), 1, 64, [x, y]), (grid("b"), 1, 64, [y, z], options)) == []


@pytest.mark.parametrize(("second", "count"), [(LAUNCH + WAIT, 1), (WAIT + LAUNCH, 0)], ids=["early", "late"])
def test_a_grid_may_overlap_with_the_one_before_the_one_before(second: str, count: int) -> None:
    x, y, z, w = arrays(4)
    chain = ((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", second), 1, 64, [x, z]), (grid("c"), 1, 64, [y, w]))
    found = findings(*chain)
    assert len(found) == count
    assert all("an earlier grid" in ptxlab.render([one]) and one.labels[1].span.source.name == "a.ptx" for one in found)


def test_the_detectors_can_be_left_out_and_a_race_raises() -> None:
    x, y, z = arrays()
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b"), 1, 64, [y, z]), detectors=False) == []
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        ptxlab.launch_chain((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b"), 1, 64, [y, z]), device="cpu")


def test_kernels_in_python_are_grids_too() -> None:
    @kernel(target="sm_90")
    def double(x: pointer[u32], y: pointer[u32]):
        ptx.griddepcontrol.wait()
        y[ptx.tid.x] = x[ptx.tid.x] * 2

    x, y, z = arrays()
    assert findings((grid("a", LAUNCH), 1, 64, [x, y]), (double, 1, 64, [y, z])) == []
    assert (z == 2 * y).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([1], r"grid 0 of the chain is int, not \(kernel, grid, block, args\)"),
        ([(grid("a"), 1, 64, [], {"seed": 1})], "grid 0 of the chain: `seed` is not one of shared, cluster"),
    ],
)
def test_what_is_not_a_grid(wrong: list[object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        ptxlab.launch_chain(*wrong, device="cpu")


def test_on_a_gpu_all_but_the_first_have_the_attribute(fake: Driver) -> None:  # noqa: F811
    fake.parameters, fake.kernel = 2, lambda places, config: None
    x, y, z = arrays()
    ptxlab.launch_chain((grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", WAIT), 1, 64, [y, z]), device="cuda")
    attributes = [[str(one.id) for one in config.attrs] for config in fake.configs]
    assert attributes[0] == []
    assert "PROGRAMMATIC_STREAM_SERIALIZATION" in attributes[1][0]
    assert fake.calls.count("cuMemAlloc") == 3
    assert fake.memory == {}


def test_both_devices_run_a_chain_and_name_what_differs(fake: Driver) -> None:  # noqa: F811
    """The driver in Python runs the grids; the second one of the wrong run stores too little."""
    steps = [1, 1]

    def add(addresses: list[int], config: object) -> None:
        x, y = (ctypes.c_uint64.from_address(one).value for one in addresses)
        step = steps[len(fake.configs) % 2]
        for at in range(0, 256, 4):
            ctypes.c_uint32.from_address(y + at).value = ctypes.c_uint32.from_address(x + at).value + step

    fake.parameters, fake.kernel = 2, add
    x, y, z = arrays()
    both = (grid("a", LAUNCH), 1, 64, [x, y]), (grid("b", WAIT), 1, 64, [y, z])
    assert [result.diagnostics for result in ptxlab.launch_chain(*both, device="both")] == [[], []]
    assert (z == x + 2).all()
    steps[:] = [0, 0]
    first, second = ptxlab.launch_chain(*both, device="both", on_error="collect")
    found = [*first.diagnostics, *second.diagnostics]
    assert {one.code for one in found} == {"disagreement"}
    assert (z == x + 2).all()


LOOK = f"""{header("8.0", "sm_90")}
.visible .entry look(.param .u64 texels, .param .u64 y)
{{
    .reg .f32 %f<5>;
    .reg .b32 %r1;
    .reg .b64 %rd<4>;
    griddepcontrol.launch_dependents;
    ld.param.u64 %rd1, [texels];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {{%f1, %f2, %f3, %f4}}, [%rd1, {{%r1}}];
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.f32 [%rd2], %f1;
    ret;
}}
.visible .entry write(.param .u64 y, .param .u64 surface)
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [y];
    ld.param.u64 %rd2, [surface];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    griddepcontrol.wait;
    ld.global.b32 %r2, [%rd1];
    shl.b32 %r3, %r1, 2;
    sust.b.1d.b32.trap [%rd2, {{%r3}}], %r2;
    ret;
}}
"""


def test_textures_and_surfaces_in_a_chain() -> None:
    module = ptxlab.parse(LOOK)
    x, y, z = np.arange(32, dtype=np.float32), np.zeros(32, np.float32), np.zeros(32, np.float32)
    look = module["look"], 1, 32, [ptxlab.Texture(x, storage="linear"), y]
    assert findings(look, (module["write"], 1, 32, [y, ptxlab.Surface(z)])) == []
    assert (z == x).all()
    with pytest.raises(
        ValueError, match="grids 0 and 1 of the chain have an array that is a texture or surface in one"
    ):
        findings(look, (module["write"], 1, 32, [y, ptxlab.Surface(x)]))
    write = module["write"], 1, 32, [y, ptxlab.Surface(z)]
    with pytest.raises(ValueError, match="several grids of the chain have surfaces"):
        findings(write, write)


@kernel(target="sm_90a")
def copy_map(template: tensor_map, made: pointer[b8]) -> None:
    ptx.griddepcontrol.launch_dependents()
    word = ptx.ld.b32(template.generic + ptx.mul.wide.u32(ptx.tid.x, 4))
    ptx.st["global"].b32(made + ptx.tid.x * 4, word)
    ptx.fence.proxy["tensormap::generic"].release.gpu()


def use_map(is_acquired: bool) -> Kernel:
    @kernel(target="sm_90a")
    def use(template: tensor_map, made: pointer[b8]) -> None:
        tile, filled = ptx.shared(u32, 32, align=128), ptx.shared(b64, 1)
        ptx.griddepcontrol.wait()
        with ptx.when(ptx.tid.x == 0):
            ptx.mbarrier.init.shared.b64(filled.at(0), 1)
            ptx.fence.mbarrier_init.release.cluster()
            if is_acquired:
                ptx.fence.proxy["tensormap::generic"].acquire.gpu(made.address, 128)
            ptx.mbarrier.arrive.expect_tx.shared.b64(filled.at(0), 128)
            copy = ptx.cp.async_.bulk.tensor["1d"]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
            copy(tile.at(0), (made.address, (s32(0),)), filled.at(0))
            with ptx.loop():
                ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(filled.at(0), 0))

    return use


@pytest.mark.parametrize("is_acquired", [True, False], ids=["acquired", "not acquired"])
def test_a_tensor_map_that_the_grid_before_made(is_acquired: bool) -> None:
    made = np.zeros(128, np.uint8)
    args = [ptxlab.tensor_map(np.zeros(32, np.uint32), box=(32,)), made]
    found = findings((copy_map, 1, 32, args), (use_map(is_acquired), 1, 32, args))
    assert [one.code for one in found] == ([] if is_acquired else ["stale-tensor-map"])
    assert is_acquired or "`copy_map`, the grid before, changed it here" in str(found[0])
