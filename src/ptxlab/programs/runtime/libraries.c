// cuBLAS and cuRAND, as far as small programs call them: the session computes, here is what calls mean. Their headers are
// not needed: handles are ours, and enumerations are numbers.
#include "runtime.h"
#include <library_types.h>

enum { BLAS_OK = 0, BLAS_NOT_INITIALIZED = 1, BLAS_INVALID_VALUE = 7, BLAS_FAILED = 13 };
enum { RANDOM_OK = 0, RANDOM_NOT_INITIALIZED = 101, RANDOM_TYPE = 103, RANDOM_LENGTH = 105, RANDOM_FAILED = 201 };
enum { F32 = CUDA_R_32F, F64 = CUDA_R_64F, F16 = CUDA_R_16F, C64 = CUDA_C_32F, C128 = CUDA_C_64F };

typedef struct { cudaStream_t stream; int pointer_mode, math_mode, atomics_mode; } Blas;
typedef struct { cudaStream_t stream; uint64_t number; bool on_host; } Random;

static void *reachable(const void *pointer) {
  return is_device_address((uint64_t)pointer) ? mine((uint64_t)pointer) : (void *)pointer;
}

static Bytes request(const char *library, const char *name) {
  Bytes bytes = {0};
  void *frames[FRAMES];
  put_text(&bytes, library), put_text(&bytes, name);
  put_frames(&bytes, frames, frames_here(frames));
  return bytes;
}

// Sends a call that is work on a stream. `size` bytes of the answer are the result, on either side.
static int compute(Bytes *bytes, const char *name, cudaStream_t stream, void *result, size_t size) {
  LOCKED;
  if (is_capturing(stream)) unsupported(name);  // a graph would have to hold it
  run_queued();
  void *snapshot = snapshot_of_shared(64ull << 20);
  started_on(stream);
  Bytes answer;
  int status = ask(REQUEST_LIBRARY, bytes, &answer);
  pending_changes(stream, snapshot, name);
  if (!status && size) {
    memcpy(reachable(result), answer.data, size);
    if (!is_device_address((uint64_t)result)) synchronized(stream);
  }
  free(answer.data);
  return status;
}

// --- cuBLAS.

API int cublasCreate_v2(Blas **into) { start(); *into = calloc(1, sizeof **into); return BLAS_OK; }
API int cublasDestroy_v2(Blas *blas) { free(blas); return BLAS_OK; }
API int cublasLtCreate(Blas **into) { return cublasCreate_v2(into); }  // products by it are not there
API int cublasLtDestroy(Blas *blas) { return cublasDestroy_v2(blas); }
API int cublasSetStream_v2(Blas *blas, cudaStream_t stream) { blas->stream = stream; return BLAS_OK; }
API int cublasGetStream_v2(Blas *blas, cudaStream_t *into) { *into = blas->stream; return BLAS_OK; }
API int cublasSetPointerMode_v2(Blas *blas, int mode) { blas->pointer_mode = mode; return BLAS_OK; }
API int cublasGetPointerMode_v2(Blas *blas, int *into) { *into = blas->pointer_mode; return BLAS_OK; }
API int cublasSetMathMode(Blas *blas, int mode) { blas->math_mode = mode; return BLAS_OK; }
API int cublasGetMathMode(Blas *blas, int *into) { *into = blas->math_mode; return BLAS_OK; }
API int cublasSetAtomicsMode(Blas *blas, int mode) { blas->atomics_mode = mode; return BLAS_OK; }
API int cublasSetWorkspace_v2(Blas *blas, void *memory, size_t size) { (void)blas, (void)memory, (void)size; return BLAS_OK; }
API int cublasGetVersion_v2(Blas *blas, int *into) { (void)blas; *into = CUDA_VERSION * 10; return BLAS_OK; }
API const char *cublasGetStatusName(int status) {
  return status == BLAS_OK ? "CUBLAS_STATUS_SUCCESS" : status == BLAS_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
       : status == BLAS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
API const char *cublasGetStatusString(int status) { return cublasGetStatusName(status); }

API int cublasSetVector(int count, int size, const void *from, int from_step, void *to, int to_step) {
  return cudaMemcpy2D(to, (size_t)to_step * size, from, (size_t)from_step * size, size, count, cudaMemcpyDefault) ? BLAS_FAILED : BLAS_OK;
}
API int cublasGetVector(int count, int size, const void *from, int from_step, void *to, int to_step) {
  return cublasSetVector(count, size, from, from_step, to, to_step);
}
API int cublasSetMatrix(int rows, int columns, int size, const void *from, int from_step, void *to, int to_step) {
  return cudaMemcpy2D(to, (size_t)to_step * size, from, (size_t)from_step * size, (size_t)rows * size, columns, cudaMemcpyDefault)
             ? BLAS_FAILED : BLAS_OK;
}
API int cublasGetMatrix(int rows, int columns, int size, const void *from, int from_step, void *to, int to_step) {
  return cublasSetMatrix(rows, columns, size, from, from_step, to, to_step);
}

static size_t scalar_size(int type) { return type == F16 || type == CUDA_R_16BF ? 2 : type == F32 ? 4 : type == C128 ? 16 : 8; }

static void put_scalar(Bytes *bytes, int type, const void *value) {
  put_number(bytes, type);
  put(bytes, reachable(value), scalar_size(type));
}

static void put_vector(Bytes *bytes, int type, int count, const void *at, int step) {
  put_number(bytes, type), put_number(bytes, count), put_number(bytes, (uint64_t)at), put_number(bytes, (uint64_t)(int64_t)step);
}

// `kind` is what NumPy does; `alpha` and `y` may be null, and `result` where nothing is returned.
static int vectors(Blas *blas, const char *name, const char *kind, int type, int count, const void *alpha, const void *x, int x_step,
                   const void *y, int y_step, void *result, size_t size) {
  if (!blas) return BLAS_NOT_INITIALIZED;
  Bytes bytes = request("cublas", name);
  put_text(&bytes, kind);
  put_number(&bytes, alpha != 0);
  if (alpha) put_scalar(&bytes, type, alpha);
  put_vector(&bytes, type, count < 0 ? 0 : count, x, x_step);
  put_number(&bytes, y != 0);
  if (y) put_vector(&bytes, type, count < 0 ? 0 : count, y, y_step);
  return compute(&bytes, name, blas->stream, result, size) ? BLAS_FAILED : BLAS_OK;
}

#define VECTORS(letter, type, T) \
  API int cublas##letter##axpy_v2(Blas *blas, int n, const T *alpha, const T *x, int xs, T *y, int ys) { \
    return vectors(blas, "cublas" #letter "axpy", "axpy", type, n, alpha, x, xs, y, ys, 0, 0); \
  } \
  API int cublas##letter##scal_v2(Blas *blas, int n, const T *alpha, T *x, int xs) { \
    return vectors(blas, "cublas" #letter "scal", "scal", type, n, alpha, x, xs, 0, 0, 0, 0); \
  } \
  API int cublas##letter##copy_v2(Blas *blas, int n, const T *x, int xs, T *y, int ys) { \
    return vectors(blas, "cublas" #letter "copy", "copy", type, n, 0, x, xs, y, ys, 0, 0); \
  } \
  API int cublas##letter##swap_v2(Blas *blas, int n, T *x, int xs, T *y, int ys) { \
    return vectors(blas, "cublas" #letter "swap", "swap", type, n, 0, x, xs, y, ys, 0, 0); \
  }
#define REAL_VECTORS(letter, small, type, T) \
  VECTORS(letter, type, T) \
  API int cublas##letter##dot_v2(Blas *blas, int n, const T *x, int xs, const T *y, int ys, T *result) { \
    return vectors(blas, "cublas" #letter "dot", "dot", type, n, 0, x, xs, y, ys, result, sizeof(T)); \
  } \
  API int cublas##letter##nrm2_v2(Blas *blas, int n, const T *x, int xs, T *result) { \
    return vectors(blas, "cublas" #letter "nrm2", "nrm2", type, n, 0, x, xs, 0, 0, result, sizeof(T)); \
  } \
  API int cublas##letter##asum_v2(Blas *blas, int n, const T *x, int xs, T *result) { \
    return vectors(blas, "cublas" #letter "asum", "asum", type, n, 0, x, xs, 0, 0, result, sizeof(T)); \
  } \
  API int cublasI##small##amax_v2(Blas *blas, int n, const T *x, int xs, int *result) { \
    return vectors(blas, "cublasI" #small "amax", "amax", type, n, 0, x, xs, 0, 0, result, sizeof(int)); \
  } \
  API int cublasI##small##amin_v2(Blas *blas, int n, const T *x, int xs, int *result) { \
    return vectors(blas, "cublasI" #small "amin", "amin", type, n, 0, x, xs, 0, 0, result, sizeof(int)); \
  }
typedef struct { float re, im; } Complex64;
typedef struct { double re, im; } Complex128;
REAL_VECTORS(S, s, F32, float)
REAL_VECTORS(D, d, F64, double)
VECTORS(C, C64, Complex64)
VECTORS(Z, C128, Complex128)

API int cublasDotEx(Blas *blas, int n, const void *x, int x_type, int xs, const void *y, int y_type, int ys, void *result, int type,
                    int compute) {
  (void)compute;
  if (x_type != y_type || x_type != type || type == C64 || type == C128) unsupported("cublasDotEx of several types");
  return vectors(blas, "cublasDotEx", "dot", type, n, 0, x, xs, y, ys, result, scalar_size(type));
}

// Matrices are by columns: `step` elements from one to the next, `batch` from one matrix to the next; with `pointers`, `at`
// is an array of addresses in device memory.
typedef struct { int type; const void *at; int64_t step, batch; } Matrix;
static void put_matrix(Bytes *bytes, Matrix one) {
  put_number(bytes, one.type), put_number(bytes, (uint64_t)one.at), put_number(bytes, one.step), put_number(bytes, one.batch);
}
static int product(Blas *blas, const char *name, const int *operations, const int64_t *sizes, int scalar, const void *alpha,
                   const void *beta, Matrix a, Matrix b, Matrix c, int count, bool pointers) {
  if (!blas) return BLAS_NOT_INITIALIZED;
  for (int i = 0; i < 3; i++)
    if (sizes[i] < 0 || operations[i / 2] < 0 || operations[i / 2] > 2) return BLAS_INVALID_VALUE;
  Bytes bytes = request("cublas", name);
  put_text(&bytes, "gemm");
  for (int i = 0; i < 2; i++) put_number(&bytes, operations[i]);
  for (int i = 0; i < 3; i++) put_number(&bytes, sizes[i]);
  put_scalar(&bytes, scalar, alpha), put_scalar(&bytes, scalar, beta);
  put_matrix(&bytes, a), put_matrix(&bytes, b), put_matrix(&bytes, c);
  put_number(&bytes, count), put_number(&bytes, pointers);
  return compute(&bytes, name, blas->stream, 0, 0) ? BLAS_FAILED : BLAS_OK;
}
#define SHAPE(ta, tb, m, n, k) (int[]){ta, tb}, (int64_t[]){m, n, k}
#define PRODUCTS(letter, type, T) \
  API int cublas##letter##gemm_v2(Blas *blas, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int as, const T *b, int bs, \
                                  const T *beta, T *c, int cs) { \
    return product(blas, "cublas" #letter "gemm", SHAPE(ta, tb, m, n, k), type, alpha, beta, (Matrix){type, a, as, 0}, \
                   (Matrix){type, b, bs, 0}, (Matrix){type, c, cs, 0}, 1, false); \
  } \
  API int cublas##letter##gemmStridedBatched(Blas *blas, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int as, \
                                             long long ab, const T *b, int bs, long long bb, const T *beta, T *c, int cs, long long cb, \
                                             int count) { \
    return product(blas, "cublas" #letter "gemmStridedBatched", SHAPE(ta, tb, m, n, k), type, alpha, beta, (Matrix){type, a, as, ab}, \
                   (Matrix){type, b, bs, bb}, (Matrix){type, c, cs, cb}, count, false); \
  } \
  API int cublas##letter##gemmBatched(Blas *blas, int ta, int tb, int m, int n, int k, const T *alpha, const T *const a[], int as, \
                                      const T *const b[], int bs, const T *beta, T *const c[], int cs, int count) { \
    return product(blas, "cublas" #letter "gemmBatched", SHAPE(ta, tb, m, n, k), type, alpha, beta, (Matrix){type, a, as, 0}, \
                   (Matrix){type, b, bs, 0}, (Matrix){type, c, cs, 0}, count, true); \
  }
PRODUCTS(S, F32, float)
PRODUCTS(D, F64, double)
PRODUCTS(C, C64, Complex64)
PRODUCTS(Z, C128, Complex128)
PRODUCTS(H, F16, uint16_t)
API int cublasHgemm(Blas *blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int as, const void *b, int bs,
                    const void *beta, void *c, int cs) {
  return cublasHgemm_v2(blas, ta, tb, m, n, k, alpha, a, as, b, bs, beta, c, cs);
}

// The type of `alpha` and `beta`, by a `cublasComputeType_t`; as a `cudaDataType` before CUDA 11.
static int scalar_of(int compute) {
  return compute == 64 || compute == 65 ? F16 : compute == 70 || compute == 71 || compute == F64 ? F64 : compute == 72 || compute == 73 ? -1 : F32;
}
API int cublasGemmStridedBatchedEx(Blas *blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int as,
                                   long long ab, const void *b, int b_type, int bs, long long bb, const void *beta, void *c, int c_type,
                                   int cs, long long cb, int count, int compute, int algorithm) {
  (void)algorithm;
  int scalar = scalar_of(compute);
  if (scalar < 0) unsupported("cublasGemmStridedBatchedEx with integers");
  if (c_type == C64 || c_type == C128) scalar = c_type;
  return product(blas, "cublasGemmStridedBatchedEx", SHAPE(ta, tb, m, n, k), scalar, alpha, beta, (Matrix){a_type, a, as, ab},
                 (Matrix){b_type, b, bs, bb}, (Matrix){c_type, c, cs, cb}, count, false);
}
API int cublasGemmEx(Blas *blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int as, const void *b,
                     int b_type, int bs, const void *beta, void *c, int c_type, int cs, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(blas, ta, tb, m, n, k, alpha, a, a_type, as, 0, b, b_type, bs, 0, beta, c, c_type, cs, 0, 1, compute,
                                    algorithm);
}
// A vector is a matrix of one row, whose columns are its elements.
#define PRODUCTS_WITH_VECTOR(letter, type, T) \
  API int cublas##letter##gemv_v2(Blas *blas, int ta, int m, int n, const T *alpha, const T *a, int as, const T *x, int xs, const T *beta, \
                                  T *y, int ys) { \
    if (xs < 1 || ys < 1) unsupported("cublas" #letter "gemv with a negative step"); \
    int rows = ta ? n : m, depth = ta ? m : n; \
    return product(blas, "cublas" #letter "gemv", SHAPE(0, !ta, 1, rows, depth), type, alpha, beta, \
                   (Matrix){type, x, xs, 0}, (Matrix){type, a, as, 0}, (Matrix){type, y, ys, 0}, 1, false); \
  }
PRODUCTS_WITH_VECTOR(S, F32, float)
PRODUCTS_WITH_VECTOR(D, F64, double)

// --- cuRAND. The numbers are NumPy's: of the same distributions, and others than NVIDIA's.

static int created(Random **into, int type, bool on_host) {
  if (type >= 200) unsupported("curandCreateGenerator of a quasirandom type");
  Bytes bytes = request("curand", "curandCreateGenerator"), answer;
  put_text(&bytes, "create");
  Random *made = calloc(1, sizeof *made);
  run_queued();
  ask(REQUEST_LIBRARY, &bytes, &answer);
  made->number = take_number(&answer), made->on_host = on_host;
  free(answer.data);
  *into = made;
  return RANDOM_OK;
}
API int curandCreateGenerator(Random **into, int type) { return created(into, type, false); }
API int curandCreateGeneratorHost(Random **into, int type) { return created(into, type, true); }
API int curandDestroyGenerator(Random *random) { free(random); return RANDOM_OK; }
API int curandSetStream(Random *random, cudaStream_t stream) { random->stream = stream; return RANDOM_OK; }
API int curandSetGeneratorOrdering(Random *random, int order) { (void)random, (void)order; return RANDOM_OK; }
API int curandGetVersion(int *into) { *into = CUDA_VERSION * 10; return RANDOM_OK; }
static int set(Random *random, const char *what, uint64_t value) {
  if (!random) return RANDOM_NOT_INITIALIZED;
  Bytes bytes = request("curand", what);
  put_text(&bytes, what), put_number(&bytes, random->number), put_number(&bytes, value);
  run_queued();
  return ask(REQUEST_LIBRARY, &bytes, 0) ? RANDOM_FAILED : RANDOM_OK;
}
API int curandSetPseudoRandomGeneratorSeed(Random *random, unsigned long long seed) { return set(random, "seed", seed); }
API int curandSetGeneratorOffset(Random *random, unsigned long long offset) { return set(random, "offset", offset); }
API int curandGenerateSeeds(Random *random) { (void)random; return RANDOM_OK; }

static int generate(Random *random, const char *name, const char *kind, int type, void *into, size_t count, double first, double second) {
  if (!random) return RANDOM_NOT_INITIALIZED;
  Bytes bytes = request("curand", name);
  put_text(&bytes, kind), put_number(&bytes, random->number), put_number(&bytes, type);
  put_number(&bytes, random->on_host ? 0 : (uint64_t)into), put_number(&bytes, count);
  put(&bytes, &first, 8), put(&bytes, &second, 8);
  size_t size = count * (type == F64 ? 8 : 4);
  return compute(&bytes, name, random->stream, into, random->on_host ? size : 0) ? RANDOM_FAILED : RANDOM_OK;
}
#define DISTRIBUTION(suffix, type, T) \
  API int curandGenerateUniform##suffix(Random *random, T *into, size_t n) { \
    return generate(random, "curandGenerateUniform" #suffix, "uniform", type, into, n, 0, 0); \
  } \
  API int curandGenerateNormal##suffix(Random *random, T *into, size_t n, T mean, T deviation) { \
    return n % 2 ? RANDOM_LENGTH : generate(random, "curandGenerateNormal" #suffix, "normal", type, into, n, mean, deviation); \
  } \
  API int curandGenerateLogNormal##suffix(Random *random, T *into, size_t n, T mean, T deviation) { \
    return n % 2 ? RANDOM_LENGTH : generate(random, "curandGenerateLogNormal" #suffix, "lognormal", type, into, n, mean, deviation); \
  }
DISTRIBUTION(, F32, float)
DISTRIBUTION(Double, F64, double)
API int curandGenerate(Random *random, unsigned *into, size_t n) {
  return generate(random, "curandGenerate", "bits", CUDA_R_32U, into, n, 0, 0);
}
API int curandGeneratePoisson(Random *random, unsigned *into, size_t n, double mean) {
  return generate(random, "curandGeneratePoisson", "poisson", CUDA_R_32U, into, n, mean, 0);
}
