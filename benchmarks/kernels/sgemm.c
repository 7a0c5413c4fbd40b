/* The loops that one 32 by 32 block of sgemm.ptx runs, thread after thread. */
void sgemm(const float *a, const float *b, float *c, int n, int depth) {
    for (int row = 0; row < 32; row++)
        for (int column = 0; column < 32; column++) {
            float sum = 0;
            for (int k = 0; k < depth; k++)
                sum += a[row * depth + k] * b[k * n + column];
            c[row * n + column] = sum;
        }
}
