"""What of a `.cu` file runs on the host, and what is left when it is made blank."""

import re

from ptxlab.toolchain.host_code import Outline, blank, launched

SOURCE = """\
#include <vector>
namespace a {
struct Point { int x; Point() : x{1} {} int twice() const { return 2 * x; } };
template <class T, int N = 4> __global__ void __launch_bounds__(128) gemm(T *x, Point p = {}) { x[0] = N; }
__device__ inline float f(float x) { return x; }
static int count(int n = 3) {
    if (n > 2) { return 1; } else { n = 4; }
#ifdef SLOW
    for (int i = 0; i < n; i++) { wait({i, i}); }
#endif
    auto late = [&](int x) { return x; };
    return late(n);
}
}
int table[] = {1, 2};
int main() { a::gemm<float, 8><<<1, 32>>>(nullptr); other<<<1, 1>>>(); }
"""


def outline() -> Outline:
    return Outline(SOURCE)


def test_functions_of_the_host_are_those_without_a_word_of_cuda() -> None:
    found = outline().host_functions()
    assert [re.findall(r"\w+", " ".join(item.head))[:3] for item in found] == [
        ["static", "int", "count"],
        ["int", "main"],
    ]
    assert outline().kernels() == ["gemm"]
    assert outline().functions() == {"gemm", "f", "count", "main"}


def test_a_line_of_the_host_is_its_smallest_statement() -> None:
    def text(line: int) -> list[str]:
        return [SOURCE[item.start : item.end] for item in outline().host_part(line, is_own=True)]

    assert text(7) == ["return 1;", "n = 4;"]
    assert text(9) == ["wait({i, i});"]
    assert text(11) == ["auto late = [&](int x) { return x; };"]
    assert text(4) == text(5) == []
    assert text(15) == ["int table[] = {1, 2};"]


def test_what_is_blank_keeps_lines_and_directives() -> None:
    left = blank(SOURCE, outline().host_functions())
    assert left.count("\n") == SOURCE.count("\n")
    assert "#ifdef SLOW" in left
    assert "__device__ inline float f" in left
    assert "late(n)" not in left


def test_launches_are_found() -> None:
    assert launched(SOURCE) == ["a::gemm<float, 8>", "other"]
