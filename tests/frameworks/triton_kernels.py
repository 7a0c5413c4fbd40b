"""Small kernels in Triton and Gluon for tests; the file is imported only where Triton is installed."""

# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


@triton.jit
def add_without_mask(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x)


@triton.jit
def race(out_ptr):
    tl.store(out_ptr, tl.program_id(0))


@triton.jit
def in_place(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)  # fewer elements than threads: several threads load each
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)


@triton.jit
def sum_in_place(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, x + 1)
    tl.store(sum_ptr, tl.sum(x))


@triton.jit
def count_in_place(x_ptr, n):
    while n > 0:  # all threads load, one stores, and the next iteration loads what it stored
        tl.store(x_ptr, tl.load(x_ptr) + 1)
        n -= 1


@triton.jit
def set_once(x_ptr, out_ptr):
    if tl.load(x_ptr) == 0:  # the thread that stores has loaded; whether others still see 0 is of no consequence
        tl.store(x_ptr, 1)
        tl.store(out_ptr, 7)


@triton.jit
def set_once_and_fill(x_ptr, out_ptr):
    if tl.load(x_ptr) == 0:
        tl.store(x_ptr, 1)
        tl.store(out_ptr + tl.arange(0, 128), 7)  # by all threads: not by those that load 1


@triton.jit
def choose_and_fill(x_ptr, out_ptr):
    chosen = 7
    if tl.load(x_ptr) == 0:
        tl.store(x_ptr, 1)
        chosen = 8
    tl.store(out_ptr + tl.arange(0, 128), chosen)


@triton.jit
def count_and_reset(x_ptr, out_ptr):
    while tl.load(x_ptr) < 5:
        tl.store(x_ptr, tl.load(x_ptr) + 1)
    tl.store(x_ptr, 0)  # threads that have not loaded 5 yet stay in the loop


@triton.jit
def reverse_in_place(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + BLOCK - 1 - i, tl.load(x_ptr + i))


@triton.jit
def chatty(x_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_assert(x < n, "too large")
    tl.device_print("seed", seed)


@triton.autotune([triton.Config({"BLOCK": 1 << 20}), triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], ["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.static_assert(BLOCK < 1 << 20)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, BLOCK + EVEN, mask=i < n)


@triton.jit
def copy_tile(source, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = source.load([0, COLUMNS])
    made = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    made.store([0, 0], tile)


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, k, DEPTH: tl.constexpr):
    i, j = tl.arange(0, 64), tl.arange(0, DEPTH)
    total = tl.zeros((64, 64), tl.float32)
    for start in range(0, k, DEPTH):
        a = tl.load(a_ptr + i[:, None] * k + start + j[None, :])
        b = tl.load(b_ptr + (start + j)[:, None] * 64 + i[None, :])
        total += tl.dot(a, b)
    tl.store(out_ptr + i[:, None] * 64 + i[None, :], total)


@triton.jit
def gather(table_ptr, out_ptr):
    address = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + tl.program_id(0), tl.load(address))


@gluon.jit
def gluon_double(x_ptr, out_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + i, gl.load(x_ptr + i) * 2)


@triton.jit
def copy_elements(to, source, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + at, tl.load(source + at, mask=at < n), mask=at < n)
