"""Cases of `cuda/calls.cu`: recursion, tables of functions, virtual methods, structs, local arrays."""

import struct

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, floats, same, whole

BUILDS = "sm_80 sm_80.G sm_80.O0"


@case("calls", BUILDS)
def fibonacci(rng):
    out = np.zeros(40, np.int32)
    numbers = [0, 1]
    while len(numbers) < 13:
        numbers.append(numbers[-1] + numbers[-2])
    return Run([Launch("fibonacci", 1, 40, [out])], [same(out, [numbers[i % 13] for i in range(40)])])


@case("calls", BUILDS)
def ackermann(rng):
    out = np.zeros(12, np.uint32)
    return Run([Launch("ackermann", 1, 12, [out])], [same(out, [1, 2, 3, 4, 2, 3, 4, 5, 3, 5, 7, 9])])


@case("calls", BUILDS)
def quicksort(rng):
    rows = whole(rng, 0, 60, 45, 37)
    return Run([Launch("quicksort", 2, 32, [rows, 45, 37])], [same(rows, np.sort(rows))])


@case("calls", BUILDS)
def by_function_table(rng):
    which, a, b = whole(rng, 0, 4, 100), whole(rng, -99, 99, 100), whole(rng, -99, 99, 100)
    out = np.zeros_like(a)
    expected = np.choose(which, [a + b, a - b, a * b, np.maximum(a, b)])
    return Run([Launch("by_function_table", 2, 64, [which, a, b, out, 100])], [same(out, expected)])


@case("calls", BUILDS)
def virtual_methods(rng):
    sizes, areas = floats(rng, 70), np.zeros(70, np.float32)
    expected = np.where(np.arange(70) % 3 == 0, sizes * sizes, sizes * np.float32(0.5))
    return Run([Launch("virtual_methods", 2, 64, [sizes, areas, 70])], [same(areas, expected)])


@case("calls", BUILDS)
def structs_by_value(rng):
    offset, scale = int(rng.integers(-99, 99)), float(rng.integers(1, 99)) / 4
    steps = [int(step) for step in rng.integers(-1000, 1000, 3)]
    settings = struct.pack("<c x h 4x d 3i 4x", b"a", offset, scale, *steps)
    values, indices = np.zeros(50), np.zeros(50, np.int32)
    i = np.arange(50)
    checks = [same(values, scale * (i + offset) + np.array(steps)[i % 3]), same(indices, steps[2] - i)]
    return Run([Launch("structs_by_value", 1, 64, [settings, values, indices, 50])], checks)


@case("calls", BUILDS)
def local_array(rng):
    digits = whole(rng, 0, 10, 64, 25, type=np.uint8)
    out = np.zeros_like(digits)
    return Run([Launch("local_array", 2, 32, [digits, out, 25])], [same(out, np.sort(digits))])


@case("calls", BUILDS)
def stack_machine(rng):
    code = np.frombuffer(bytes([0, 3, 2, 7, 1, 4, 5, 200, 6, 8, 3, 1, 0, 77, 2, 1]), np.uint8).copy()
    results = np.zeros((2, 32), np.int32)
    expected = [[interpret(code, thread, block) for thread in range(32)] for block in range(2)]
    return Run([Launch("stack_machine", 2, 32, [code, len(code), results])], [same(results, expected)])


def interpret(code, thread, block):
    """What the little program leaves on its stack."""
    stack = []
    for op in code.tolist():
        if op in (1, 2, 6):
            b, a = stack.pop(), stack.pop()
            stack.append({1: a + b, 2: a * b, 6: a - b}[op])
        elif op in (4, 5, 8):
            a = stack.pop()
            stack.append({4: -a, 5: a ^ 0x55, 8: a >> 1}[op])
        else:
            stack.append({0: thread, 3: stack[-1] if stack else 0, 7: block + 1}.get(op, op))
    return stack[-1]
