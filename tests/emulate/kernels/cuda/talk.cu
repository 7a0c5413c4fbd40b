// What a kernel says: printf with every kind of argument, assertions that hold and one that fails, a trap.
// make: sm_80
// make: sm_80 -G
#include <assert.h>
#include <stdio.h>

extern "C" __global__ void greet(int n, double x) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        printf("plain text, 100%%\n");
        printf("%d %i %u %x %X %o %c|%5d|%-5d|%05d|%+d\n", -3, n, 4000000000u, 48879, 48879, 8, 'z', n, n, n, n);
        printf("%f %.3f %e %g %10.2f %a\n", x, x, x, x, x, 0.5);
        printf("%s and %s, %lld %llu %lx %hd\n", "words", "more words", -5000000000ll, 18446744073709551615ull, 255ul, (short)-7);
        printf("%d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    }
}

extern "C" __global__ void every_thread_speaks() { printf("block %d thread %d\n", blockIdx.x, threadIdx.x); }

extern "C" __global__ void assert_below(const int* x, int limit, int* out) {
    assert(x[threadIdx.x] < limit);
    out[threadIdx.x] = x[threadIdx.x] + 1;
}

extern "C" __global__ void trap_at_zero(const int* x, int* out) {
    if (x[threadIdx.x] == 0) __trap();
    out[threadIdx.x] = 100 / x[threadIdx.x];
}
