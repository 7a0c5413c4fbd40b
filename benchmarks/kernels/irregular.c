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
