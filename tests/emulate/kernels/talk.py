"""Cases of `cuda/talk.cu`: printf, assertions, a trap."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, prints, same, whole

BUILDS = "sm_80 sm_80.G"


@case("talk", BUILDS)
def greet(rng):
    n, x = int(rng.integers(-99, 99)), float(rng.integers(1, 9999)) / 8
    lines = [
        "plain text, 100%",
        f"-3 {n} 4000000000 beef BEEF 10 z|{n:5d}|{n:<5d}|{n:05d}|{n:+d}",
        f"{x:f} {x:.3f} {x:e} {x:g} {x:10.2f} 0x1p-1",
        "words and more words, -5000000000 18446744073709551615 ff -7",
        "1 2 3 4 5 6 7 8 9 10",
    ]
    return Run([Launch("greet", 2, 32, [n, x])], [prints(lines)])


@case("talk", BUILDS)
def every_thread_speaks(rng):
    lines = [f"block {block} thread {thread}" for block in range(2) for thread in range(40)]
    return Run([Launch("every_thread_speaks", 2, 40, [])], [prints(lines, any_order=True)])


@case("talk", BUILDS)
def assertion_holds(rng):
    x = whole(rng, 0, 50, 32)
    out = np.zeros_like(x)
    return Run([Launch("assert_below", 1, 32, [x, 50, out])], [same(out, x + 1)])


@case("talk", BUILDS)
def assertion_fails(rng):
    x = whole(rng, 0, 50, 32)
    x[13] = 50
    out = np.zeros_like(x)
    return Run([Launch("assert_below", 1, 32, [x, 50, out])], [], fails="x[threadIdx.x] < limit")


@case("talk", BUILDS)
def trap_spared(rng):
    x = whole(rng, 1, 50, 32)
    out = np.zeros_like(x)
    return Run([Launch("trap_at_zero", 1, 32, [x, out])], [same(out, 100 // x)])


@case("talk", BUILDS)
def trap_met(rng):
    x = whole(rng, 1, 50, 32)
    x[5] = 0
    return Run([Launch("trap_at_zero", 1, 32, [x, np.zeros_like(x)])], [], fails="trap")
