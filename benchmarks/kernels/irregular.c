/* The loops that the threads of irregular.ptx run. */
void gather(const float *x, const unsigned *starts, float *y, int count) {
    for (int i = 0; i < count; i++) {
        unsigned at = starts[i];
        float sum = 0;
        for (int k = 0; k < 8; k++) {
            sum += x[at];
            at = (at * 5 + 1) & 32767;
        }
        y[i] = sum;
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The gathers of `gather` by vectors, with each address compared with the last. */
__attribute__((target("avx2"))) void gather_vectors(const float *x, const unsigned *starts, float *y, int count,
                                                    int last) {
    __m256i bound = _mm256_set1_epi32(last), outside = _mm256_setzero_si256();
    for (int i = 0; i < count; i += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(starts + i));
        __m256 sum = _mm256_setzero_ps();
        for (int k = 0; k < 8; k++) {
            outside = _mm256_or_si256(outside, _mm256_cmpgt_epi32(at, bound));
            sum = _mm256_add_ps(sum, _mm256_i32gather_ps(x, at, 4));
            at = _mm256_add_epi32(_mm256_mullo_epi32(at, _mm256_set1_epi32(5)), _mm256_set1_epi32(1));
            at = _mm256_and_si256(at, _mm256_set1_epi32(32767));
        }
        _mm256_storeu_ps(y + i, sum);
    }
    if (!_mm256_testz_si256(outside, outside))
        y[0] = -1;
}
#endif

/* The same one by one, with each address compared with the last. */
void gather_compared(const float *x, const unsigned *starts, float *y, int count, unsigned last) {
    for (int i = 0; i < count; i++) {
        unsigned at = starts[i];
        float sum = 0;
        for (int k = 0; k < 8; k++) {
            if (at > last) {
                y[0] = -1;
                return;
            }
            sum += x[at];
            at = (at * 5 + 1) & 32767;
        }
        y[i] = sum;
    }
}

void histogram(const unsigned *values, unsigned *bins, int count) {
    for (int i = 0; i < count; i++)
        __atomic_fetch_add(&bins[values[i] & 1023], 1, __ATOMIC_RELAXED);
}

void collatz(const unsigned *values, unsigned *steps, int count) {
    for (int i = 0; i < count; i++) {
        unsigned value = values[i] + 1, step = 0;
        while (value != 1 && step < 200) {
            value = value & 1 ? 3 * value + 1 : value >> 1;
            step++;
        }
        steps[i] = step;
    }
}
