"""Which scopes order ranks, and what races and hangs between ranks say."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Source
from tests.node.messages import ACQUIRE, PASS, RELEASE, codes, message_passing

RIGHT = {
    "release and acquire": (RELEASE, ACQUIRE, ""),
    "fences": ("fence.acq_rel.sys; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];",
               "fence.acq_rel.sys;"),
    "membar": ("membar.sys; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];", "membar.sys;"),
    "atomics": ("red.release.sys.global.add.u32 [%flag], 1;", "atom.acquire.sys.global.or.b32 %f, [%flag], 0;", ""),
}  # fmt: skip
WRONG = {
    "release.gpu": ("st.release.gpu.global.u32 [%flag], 1;", ACQUIRE, ""),
    "acquire.gpu": (RELEASE, "ld.acquire.gpu.global.u32 %f, [%flag];", ""),
    "fence.gpu": ("fence.acq_rel.gpu; st.volatile.global.u32 [%flag], 1;", ACQUIRE, ""),
    "membar.gl": ("membar.gl; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];",
                  "membar.sys;"),
    "volatile": ("st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %f, [%flag];", ""),
    "atom.gpu": (RELEASE, "atom.acquire.gpu.global.or.b32 %f, [%flag], 0;", ""),
}  # fmt: skip


@pytest.mark.parametrize("how", RIGHT)
def test_a_message_to_another_gpu_is_ordered_by_system_scope(how: str) -> None:
    node, kernel, arrays = message_passing(*RIGHT[how])
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    assert codes(node, seeds=range(1, 6)) == []
    assert arrays[2].numpy() == 42


@pytest.mark.parametrize("how", WRONG)
def test_narrower_scopes_do_not_order_with_another_gpu(how: str) -> None:
    for seed in (1, 2):
        node, kernel, arrays = message_passing(*WRONG[how])
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        assert "data-race" in codes(node, seed=seed)


def test_all_schedules_of_two_gpus_are_explored() -> None:
    for how, codes_of_all in ((RIGHT["fences"], []), (WRONG["fence.gpu"], ["data-race"])):
        node, kernel, arrays = message_passing(*how)
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        found = node.explore(every=True)
        assert found.is_complete
        assert found.executions > 1
        assert [one.code for one in found.diagnostics] == codes_of_all
        assert {int(outcome.arrays[2][0]) for outcome in found.outcomes} == {42}
        assert arrays[2].data[0] == 0  # memory is as before, and the launches are still to be run
        assert codes(node, schedule=found.outcomes[0].schedule) == codes_of_all
        assert arrays[2].numpy() == 42


def test_exploring_follows_streams_and_events() -> None:
    for is_ordered, values in ((True, {0x01010101}), (False, {0, 0x01010101})):
        node = ptxlab.node(2)
        source, copy = node[0].zeros(1, np.uint32), node[1].zeros(1, np.uint32)
        stream = node[1].stream()
        node[0].fill(source, 1)
        if is_ordered:
            stream.wait(node[0].record())
        stream.copy(copy, source)
        found = node.explore(every=True)
        assert found.is_complete
        assert {int(outcome.arrays[1][0]) for outcome in found.outcomes} == values
        assert bool(found.diagnostics) != is_ordered


def test_a_hang_of_two_gpus_is_found_by_exploring() -> None:
    node, kernel, arrays = message_passing("")
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    (found,) = node.explore().diagnostics
    assert (found.code, found.message) == ("hang", "rank 1 waits for a change that never comes")
    assert "which nothing has written since the launch" in found.notes[0]
    with pytest.raises(ValueError, match="nothing was launched"):
        ptxlab.node(2).explore()


def test_the_same_scopes_order_blocks_of_one_gpu() -> None:
    node, kernel, arrays = message_passing(*WRONG["release.gpu"][:1], "ld.acquire.gpu.global.u32 %f, [%flag];")
    first, second = node[0].stream(), node[0].stream()
    for rank, stream in enumerate((first, second)):
        stream.launch(kernel, 1, 1, [*arrays, rank])
    found = codes(node, seed=3)
    assert found == ["data-race"]  # only of the module's own variable, which both launches write


def test_a_race_between_ranks_names_them_and_the_scope() -> None:
    node, kernel, arrays = message_passing(*WRONG["release.gpu"])
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    with pytest.raises(ptxlab.KernelError) as caught:
        node.synchronize()
    text = ptxlab.render(caught.value.diagnostics)
    assert "unsynchronized: rank 1 reads global memory that rank 0 writes" in text
    assert "`st.release.gpu.global.u32` in line 18" in text
    assert "bytes 0..4 of `flag` of rank 1" in text
    assert "help: release with `.sys` after the write" in text
    assert "event:" not in text


def test_races_of_one_line_that_calls_a_library_are_separate() -> None:
    def of(line: int) -> str:
        return f".loc 1 3 1\n.loc 2 {line} 1, function_name send, inlined_at 1 3 1\n"

    text = PASS.replace("WRITE", f"{of(8)} st.release.gpu.global.u32 [%flag], 1;").replace("READ", f"{of(9)} {ACQUIRE}")
    text = text.replace("FENCE", of(11)).replace("    st.global.u32 [%data]", f"{of(7)} st.global.u32 [%data]")
    files = '.file 1 "k.cu"\n.file 2 "cub/send.h"\n.section .debug_str { send: .b8 115, 0 }\n'
    module = ptxlab.parse(text + files, "pass.ptx")
    module.origins["k.cu"] = Source("k.cu", "line\n" * 9)
    node = ptxlab.node(2)
    arrays = [node[1].zeros(1, np.uint32) for _ in range(3)]
    for rank in range(2):
        node[rank].launch(module["pass"], 1, 1, [*arrays, rank])
    found = node.synchronize(on_error="collect").diagnostics
    assert {(one.file, one.line) for one in found} == {("k.cu", 3)}
    calls = {tuple(note for note in one.notes if note.startswith("line 3 calls")) for one in found}
    assert calls == {
        ("line 3 calls `s` (cub/send.h:7)", "line 3 calls `s` (cub/send.h:11)"),
        ("line 3 calls `s` (cub/send.h:8)", "line 3 calls `s` (cub/send.h:9)"),
    }


def test_a_hang_says_what_each_rank_polls_and_who_wrote_it() -> None:
    node, kernel, arrays = message_passing(RELEASE.replace("%flag", "%out"))
    for rank in range(2):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert (found.code, found.message) == ("hang", "rank 1 waits for a change that never comes")
    assert found.notes == (
        "rank 1 reads 0 in bytes 0..4 of `flag` of rank 1, which nothing has written since the launch",
        "rank 0 has ended",
    )
    node[0].launch(kernel, 1, 1, [*arrays, 0])
    node[0].fill(arrays[1])
    node[1].wait(node[0].record())
    node[1].launch(kernel, 1, 1, [*arrays, 1])
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert "which the fill of `flag` of rank 1 wrote last" in found.notes[0]


def test_one_seed_is_one_run() -> None:
    traces = []
    for _ in range(2):
        node, kernel, arrays = message_passing()
        for rank in range(2):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        traces.append([node.synchronize(seed=seed).coverage.schedules for seed in (5,)])
    assert traces[0] == traces[1]


def test_a_thread_that_counts_its_polls_waits_for_blocks_that_have_not_started() -> None:
    text = PASS.replace("WRITE", RELEASE).replace("READ", f"add.u32 %r, %r, 1;\n{ACQUIRE}").replace("FENCE", "")
    kernel = ptxlab.parse(text, "pass.ptx")["pass"]
    for seed in range(1, 24):
        node = ptxlab.node(2)
        arrays = [node[1].zeros(1, np.uint32) for _ in range(3)]
        for rank in (0, 1) if seed % 2 else (1, 0):
            node[rank].launch(kernel, 1, 1, [*arrays, rank])
        assert max(span.end for span in node.synchronize(seed=seed, timeout=30).timeline.spans) < 200
        assert arrays[2].numpy() == 42
