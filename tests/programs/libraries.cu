// Calls of cuBLAS and cuRAND, by their functions' names alone: neither headers nor libraries are needed to compile this.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

constexpr int m = 3, n = 4, k = 5;
static void* blas;

template <class... T>
int call(const char* name, T... arguments) {
    return ((int (*)(T...))dlsym(RTLD_DEFAULT, name))(arguments...);
}
template <class T>
T* on_device(const T* values, int count) {
    T* made;
    cudaMalloc(&made, count * sizeof(T));
    cudaMemcpy(made, values, count * sizeof(T), cudaMemcpyDefault);
    return made;
}
template <class T>
double difference(const T* found, const double* expected, int count) {
    T* host = new T[count];
    cudaMemcpy(host, found, count * sizeof(T), cudaMemcpyDefault);
    double worst = 0;
    for (int i = 0; i < count; i++) worst = fmax(worst, fabs(double(host[i]) - expected[i]));
    return worst;
}

template <class T>
void gemm(const char* name) {  // C = 2 A^T B + 3 C, with columns that are further apart than they are long
    T a[k * m], b[6 * n], c[m * n];
    double expected[m * n];
    for (int i = 0; i < k * m; i++) a[i] = T(i % 7 - 3);
    for (int i = 0; i < 6 * n; i++) b[i] = T(i % 5 - 2);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int p = 0; p < k; p++) sum += double(a[i * k + p]) * double(b[j * 6 + p]);
            c[j * m + i] = T(i);
            expected[j * m + i] = 2 * sum + 3 * i;
        }
    T two = 2, three = 3, *da = on_device(a, k * m), *db = on_device(b, 6 * n), *dc = on_device(c, m * n);
    int status = call(name, blas, 1, 0, m, n, k, &two, da, k, db, 6, &three, dc, m);
    printf("%s %d %g\n", name, status, difference(dc, expected, m * n));
}
template <class T>
void vectors(const char* letter) {
    T x[6] = {1, 2, -3, 4, -5, 6}, y[3] = {10, 20, 30}, two = 2, dot = 0, norm = 0;
    double scaled[6] = {2, 2, -6, 4, -10, 6};
    T *dx = on_device(x, 6), *dy = on_device(y, 3), *dz = on_device(y, 2);
    char name[40];
    auto named = [&](const char* rest) { snprintf(name, 40, "cublas%s%s_v2", letter, rest); return name; };
    call(named("axpy"), blas, 3, &two, dx, 2, dy, 1);  // y += 2 x[0, 2, 4]
    double third[3] = {12, 14, 20};
    printf("%g ", difference(dy, third, 3));
    call(named("dot"), blas, 3, dx, 1, dy, 1, &dot);
    call(named("nrm2"), blas, 6, dx, 1, &norm);
    printf("%g %.4f ", double(dot), double(norm));
    T zero = 0, one = 1;
    call(named("gemv"), blas, 0, 2, 2, &one, dx, 2, dy, 1, &zero, dz, 1);  // columns (1, 2) and (-3, 4)
    double times[2] = {12 - 3 * 14, 2 * 12 + 4 * 14};
    printf("%g ", difference(dz, times, 2));
    call(named("scal"), blas, 3, &two, dx, 2);
    printf("%g\n", difference(dx, scaled, 6));
}
void blas_products() {
    call("cublasCreate_v2", &blas);
    gemm<float>("cublasSgemm_v2");
    gemm<double>("cublasDgemm_v2");
    vectors<float>("S");
    vectors<double>("D");
}
void blas_too_small() {
    float one = 1, host[16] = {}, *a = on_device(host, 16), *c = on_device(host, 8);
    call("cublasCreate_v2", &blas);
    printf("%d\n", call("cublasSgemm_v2", blas, 0, 0, 4, 4, 4, &one, a, 4, a, 4, &one, c, 4));  // mistake
}
void random_numbers() {
    void* generator;
    constexpr int count = 1 << 16;
    static float host[count];
    float* d = on_device(host, count);
    call("curandCreateGenerator", &generator, 100);
    call("curandSetPseudoRandomGeneratorSeed", generator, 1234ull);
    auto show = [&] {
        cudaMemcpy(host, d, sizeof host, cudaMemcpyDefault);
        double sum = 0, squares = 0, least = 1e9, most = -1e9;
        for (float x : host) sum += x, squares += x * x, least = fmin(least, x), most = fmax(most, x);
        double mean = sum / count;
        printf("%.1f %.1f %d\n", mean, sqrt(squares / count - mean * mean), least > 0 && most <= 1);
    };
    call("curandGenerateUniform", generator, d, size_t(count));
    show();
    call("curandGenerateNormal", generator, d, size_t(count), 5.0f, 2.0f);
    show();
    printf("%d\n", call("curandGenerateNormal", generator, d, size_t(3), 5.0f, 2.0f));
}

int main(int, char** argv) {
    if (!strcmp(argv[1], "products")) blas_products();
    if (!strcmp(argv[1], "too_small")) blas_too_small();
    if (!strcmp(argv[1], "random")) random_numbers();
}
