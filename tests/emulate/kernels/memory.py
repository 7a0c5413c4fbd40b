"""Cases of `cuda/memory.cu`: constant tables, global variables, dynamic shared memory, structs, the heap."""

import zlib

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats, same, whole, words

BUILDS = "sm_80 sm_80.O0"


@case("memory", BUILDS)
def crc32(rng):
    lines, out = words(rng, 30, 17, type=np.uint8), np.zeros(30, np.uint32)
    return Run([Launch("crc32", 1, 32, [lines, 17, out, 30])], [same(out, [zlib.crc32(line) for line in lines])])


@case("memory", BUILDS)
def global_variable(rng):
    """A variable keeps its value from one launch of a loaded module to the next."""
    first, second = np.zeros(1, np.int32), np.zeros(1, np.int32)
    launches = [Launch("count_a_call", 1, 32, [seen]) for seen in (first, second)]
    return Run(launches, [same(first, 5), same(second, 6)])


@case("memory", BUILDS)
def polynomial(rng):
    x, out = floats(rng, 60, type=np.float64), np.zeros(60)
    expected = 0.5 + x * (-1.25 + x * (2.0 + x * 0.125))
    return Run([Launch("polynomial", 1, 64, [x, out, 60])], [close(out, expected, 1e-14, 1e-14)])


@case("memory", BUILDS, synchronizes="block")
def three_in_one(rng):
    x, out = floats(rng, 50, type=np.float64), np.zeros(50, np.float32)
    back = np.arange(50)[::-1]
    expected = np.where(back % 5 == 0, -1, 2 * x[back])
    return Run([Launch("three_in_one", 1, 64, [x, out, 50], shared=50 * 13)], [same(out, expected)])


@case("memory", BUILDS)
def gather(rng):
    table, places = whole(rng, -99, 99, 40, 4, type=np.float32), whole(rng, 0, 40, 90)
    out = np.zeros(90, np.float32)
    rows = table[places]
    expected = (rows[:, 0] + rows[:, 1]) - (rows[:, 2] + rows[:, 3])
    return Run([Launch("gather", 3, 32, [table, places, out, 90])], [same(out, expected)])


PARTICLE = np.dtype([("position", np.float32, 3), ("alive", np.uint8), ("unused", np.uint8), ("age", np.int16)])


@case("memory", BUILDS)
def age_particles(rng):
    particles = np.zeros(45, PARTICLE)
    particles["position"] = whole(rng, -9, 9, 45, 3)
    particles["alive"] = whole(rng, 0, 2, 45)
    particles["age"] = whole(rng, 0, 8, 45)
    expected = particles.copy()
    for p in expected:
        if p["alive"]:
            p["position"][p["age"] % 3] += 1
            p["age"] += 1
            p["alive"] = p["age"] < 7
    memory = particles.view(np.uint8)

    def check(printed):
        for field in ("position", "alive", "age"):
            np.testing.assert_array_equal(memory.view(PARTICLE)[field], expected[field])

    return Run([Launch("age_particles", 2, 32, [memory, 45])], [check])


@case("memory", BUILDS)
def linked_lists(rng):
    sums = np.zeros((2, 40), np.int32)
    expected = [sum((k + 1) * (t % 9 - k) * t for k in range(t % 9 + 1)) for t in range(40)]
    return Run([Launch("linked_lists", 2, 40, [sums])], [same(sums, [expected, expected])])
