/* The loop that the threads of polynomial.ptx run. */
void polynomial(const float *x, float *y, int count) {
    for (int i = 0; i < count; i++) {
        float value = x[i], sum = value;
        for (int k = 0; k < 24; k++)
            sum = sum * value + 0.5f;
        y[i] = sum;
    }
}
