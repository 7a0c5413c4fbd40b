"""All schedules of a small kernel: `ptxlab.explore`."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.device.options import LaunchOptions
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.search.directing import Moment
from ptxlab.emulate.search.explore import ExploredKernel, Watch, read_schedule, write_schedule

HEAD = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %out, %rd<4>;
    .reg .b32 %b, %r<12>;
    .reg .pred %p<4>;
    ld.param.u64 %out, [out];
    mov.u32 %b, %ctaid.x;
"""


def kernel(threads: Sequence[str]) -> Any:
    """A kernel whose blocks, of one thread each, run these programs."""
    body = ""
    for number, program in enumerate(threads):
        body += f"setp.ne.u32 %p1, %b, {number};\n@%p1 bra after{number};\n{program}\nret;\nafter{number}:\n"
    return ptxlab.parse(f"{HEAD}{body}ret;\n}}\n")["k"]


def explore(threads: Sequence[str], **how: Any) -> Any:
    return ptxlab.explore(kernel(threads), len(threads), 1, [np.zeros(16, np.uint32)], every=True, **how)


def store(word: int, value: int, order: str = "relaxed.gpu") -> str:
    return f"st.{order}.global.u32 [%out+{4 * word}], {value};\n"


def load(word: int, to: int, order: str = "relaxed.gpu") -> str:
    """Read a word, and keep it in a word of its own."""
    return f"ld.{order}.global.u32 %r{to}, [%out+{4 * word}];\n"


def keep(register: int, word: int) -> str:
    return f"st.relaxed.gpu.global.u32 [%out+{4 * word}], %r{register};\n"


def outcomes(found: Any) -> set[tuple[int, ...]]:
    return {tuple(map(int, outcome.arrays[0])) for outcome in found.outcomes}


# How many schedules differ.


@pytest.mark.parametrize(("writers", "count"), [(1, 1), (2, 2), (3, 6), (4, 24)])
def test_writers_of_one_word_come_in_any_order(writers: int, count: int) -> None:
    found = explore([store(0, 1 + number) for number in range(writers)])
    assert (found.executions, found.redundant, found.is_complete) == (count, 0, True)


@pytest.mark.parametrize("readers", [1, 2, 3, 5])
def test_readers_come_before_or_after_a_writer(readers: int) -> None:
    found = explore([store(0, 1)] + [load(0, 1)] * readers)
    assert (found.executions, found.redundant) == (2**readers, 0)
    assert found.verdict == f"explored all {2**readers} executions that differ: no race, no hang"


def test_accesses_to_different_words_need_one_schedule() -> None:
    found = explore([store(number, 1) * 3 for number in range(6)])
    assert (found.executions, found.threads, found.steps) == (1, 6, 18)


def test_threads_between_barriers_need_one_schedule() -> None:
    text = (
        HEAD.replace("%ctaid", "%tid")
        + """
    mad.wide.u32 %rd1, %b, 4, %out;
    xor.b32 %r2, %b, 1;
    mad.wide.u32 %rd2, %r2, 4, %out;
    st.global.u32 [%rd1], %b;
    bar.sync 0;
    ld.global.u32 %r3, [%rd2];
    bar.sync 0;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
    )
    found = ptxlab.explore(ptxlab.parse(text)["k"], 1, 8, [np.zeros(8, np.uint32)], every=True)
    assert (found.executions, found.redundant, found.is_complete) == (1, 0, True)
    assert outcomes(found) == {(1, 0, 3, 2, 5, 4, 7, 6)}


# What they give.


def test_store_buffering_has_the_outcomes_of_interleavings() -> None:
    """A load may be before a store of its own thread on a GPU; the emulator takes accesses of a thread in order."""
    found = explore([store(0, 1) + load(1, 1) + keep(1, 2), store(1, 1) + load(0, 1) + keep(1, 3)])
    assert {one[2:4] for one in outcomes(found)} == {(1, 1), (0, 1), (1, 0)}


LOCK = """
acquire{0}:
    atom.acquire.gpu.global.cas.b32 %r1, [%out+{1}], 0, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra acquire{0};
"""
UNLOCK = "atom.release.gpu.global.exch.b32 %r2, [%out+{0}], 0;\n"


def locked(name: str, words: Sequence[int]) -> str:
    """Take locks in this order, add 1 to the last word, and give them back."""
    text = "".join(LOCK.format(f"{name}{word}", 4 * word) for word in words)
    text += "ld.global.u32 %r3, [%out+60];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%out+60], %r3;\n"
    return text + "".join(UNLOCK.format(4 * word) for word in reversed(words))


def test_a_lock_keeps_threads_apart() -> None:
    found = explore([locked("a", [0]), locked("b", [0]), locked("c", [0])])
    assert found.is_complete
    assert found.diagnostics == []
    assert {one[15] for one in outcomes(found)} == {3}


def test_two_locks_in_different_orders_hang() -> None:
    found = explore([locked("a", [0, 1]), locked("b", [1, 0])])
    assert [diagnostic.code for diagnostic in found.diagnostics] == ["hang"]
    assert found.is_complete
    right = explore([locked("a", [0, 1]), locked("b", [0, 1])])
    assert (right.diagnostics, right.is_complete) == ([], True)


def test_a_finding_says_how_to_replay_it() -> None:
    threads = [store(1, 1) + store(0, 7, "weak") + store(1, 0, "release.gpu"),
               load(1, 1, "acquire.gpu") + "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra end;\n" + load(0, 2, "weak")
               + keep(2, 2) + "end:\n"]  # fmt: skip
    found = ptxlab.explore(kernel(threads), 2, 1, [np.zeros(4, np.uint32)])
    (race,) = found.diagnostics
    assert race.code == "data-race"
    assert found.verdict.startswith("a finding after ")
    schedule = race.notes[-1].removeprefix('replay with `schedule="').partition('"')[0]
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        kernel(threads).launch(2, 1, [np.zeros(4, np.uint32)], schedule=schedule)
    assert kernel(threads).launch(2, 1, [np.zeros(4, np.uint32)], schedule="0x3,1x2").diagnostics == []


def test_arguments_and_variables_stay_as_they_are() -> None:
    flags = np.array([5], np.uint32)
    ptxlab.explore(kernel([store(0, 1), store(0, 2)]), 2, 1, [flags])
    assert flags[0] == 5


def test_limits_are_said() -> None:
    found = explore([store(0, 1 + number) for number in range(5)], limit=10)
    assert (found.executions, found.is_complete) == (10, False)
    assert found.verdict == "not finished within the limits, after 10 executions: there are more"
    endless = explore(["loop:\nred.relaxed.gpu.global.add.u32 [%out], 1;\nbra loop;\n"], timeout=1)
    assert not endless.is_complete


def test_a_schedule_is_written_and_read() -> None:
    for threads in ([0], [0, 0, 0, 1, 2, 3, 3, 2], [5, 6, 7, 7, 7, 0], [1, 2, 4, 5]):
        assert read_schedule(write_schedule(threads)) == threads
    assert write_schedule([0, 0, 1, 2, 3]) == "0x2,1-3"
    with pytest.raises(ValueError, match="not a schedule"):
        read_schedule("0x")


# Against a search that tries everything.


def everything(threads: Sequence[str]) -> set[tuple[Any, ...]]:
    """What all interleavings give, none left out."""
    found = set()
    prefix: list[int] = []
    options = LaunchOptions(len(threads), 1)
    program = ExploredKernel(EmulatedModule.load(kernel(threads).module), kernel(threads), options)
    watch = Watch(600)
    while True:
        taken: list[tuple[int, list[int]]] = []

        def choose(moment: Moment, prefix: list[int] = prefix, taken: list[tuple[int, list[int]]] = taken) -> int:
            enabled = sorted(moment.marks)
            chosen = prefix[len(taken)] if len(taken) < len(prefix) else enabled[0]
            taken.append((chosen, enabled))
            return chosen

        array = np.zeros(16, np.uint32)
        result, _, _ = program.run([array], choose, watch)
        found.add((tuple(map(int, array)), bool(result.diagnostics)))
        while taken and taken[-1][0] == taken[-1][1][-1]:
            taken.pop()
        if not taken:
            watch.end()
            return found
        chosen, enabled = taken.pop()
        prefix = [one for one, _ in taken] + [enabled[enabled.index(chosen) + 1]]


def some_program(chance: random.Random, threads: int, length: int) -> list[str]:
    """Loads, stores and atomics, relaxed and weak, on three words; what was loaded decides whether to continue."""
    found = []
    for number in range(threads):
        text, register = "", 1
        for at in range(length):
            word = chance.randrange(3)
            match chance.randrange(4):
                case 0:
                    text += store(word, chance.randrange(1, 4), chance.choice(["relaxed.gpu", "release.gpu"]))
                case 1:
                    text += store(word, chance.randrange(1, 4), "weak")
                case 2:
                    text += load(word, register, chance.choice(["acquire.gpu", "weak"]))
                    text += f"setp.eq.u32 %p2, %r{register}, {chance.randrange(3)};\n@%p2 bra out{number};\n"
                    register += 1
                case 3:
                    text += f"atom.acq_rel.gpu.global.add.u32 %r{register}, [%out+{4 * word}], {at + 1};\n"
                    register += 1
        found.append(f"{text}out{number}:\n")
    return found


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_left_out(seed: int) -> None:
    chance = random.Random(seed)
    threads = some_program(chance, *((2, 4) if seed % 2 else (3, 2)))
    found = explore(threads)
    assert found.is_complete
    everywhere = everything(threads)
    assert outcomes(found) == {array for array, _ in everywhere}
    assert bool(found.diagnostics) == any(has_finding for _, has_finding in everywhere)
