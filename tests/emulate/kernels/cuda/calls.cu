// Functions that stay functions: recursion, tables of functions, virtual methods, structs by value, arrays in local memory.
// make: sm_80
// make: sm_80 -G
// make: sm_80 -Xcicc -O0

__device__ __noinline__ int fibonacci_of(int n) { return n < 2 ? n : fibonacci_of(n - 1) + fibonacci_of(n - 2); }

extern "C" __global__ void fibonacci(int* out) { out[threadIdx.x] = fibonacci_of(threadIdx.x % 13); }

__device__ __noinline__ unsigned int ackermann_of(unsigned int m, unsigned int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann_of(m - 1, 1);
    return ackermann_of(m - 1, ackermann_of(m, n - 1));
}

extern "C" __global__ void ackermann(unsigned int* out) { out[threadIdx.x] = ackermann_of(threadIdx.x / 4, threadIdx.x % 4); }

// Each thread sorts a row of its own.
__device__ __noinline__ void quicksort_rows(int* a, int low, int high) {
    if (low >= high) return;
    int pivot = a[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot) ++i;
        while (a[j] > pivot) --j;
        if (i > j) break;
        int kept = a[i];
        a[i++] = a[j];
        a[j--] = kept;
    }
    quicksort_rows(a, low, j);
    quicksort_rows(a, i, high);
}

extern "C" __global__ void quicksort(int* rows, int count, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < count) quicksort_rows(rows + row * length, 0, length - 1);
}

typedef int (*operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int larger(int a, int b) { return a > b ? a : b; }
__device__ operation operations[] = {plus, minus, times, larger};

extern "C" __global__ void by_function_table(const int* which, const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[which[i]](a[i], b[i]);
}

struct Shape {
    __device__ virtual float area() const = 0;
};

struct Square : Shape {
    float side;
    __device__ Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};

struct Rectangle : Shape {
    float width, height;
    __device__ Rectangle(float width, float height) : width(width), height(height) {}
    __device__ float area() const override { return width * height; }
};

__device__ __noinline__ float area_of(const Shape* shape) { return shape->area(); }

extern "C" __global__ void virtual_methods(const float* sizes, float* areas, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Square square(sizes[i]);
    Rectangle rectangle(sizes[i], 0.5f);
    areas[i] = area_of(i % 3 == 0 ? (const Shape*)&square : (const Shape*)&rectangle);
}

struct Settings {
    char kind;
    short offset;
    double scale;
    int steps[3];
};

struct Pair {
    double value;
    int index;
};

__device__ __noinline__ Pair scaled(Settings s, int i) {
    Pair out;
    out.value = s.scale * (s.kind == 'a' ? i + s.offset : i - s.offset) + s.steps[i % 3];
    out.index = s.steps[2] - i;
    return out;
}

extern "C" __global__ void structs_by_value(Settings s, double* values, int* indices, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair p = scaled(s, i);
    values[i] = p.value;
    indices[i] = p.index;
}

// A counting sort of digits in an array that lives in local memory, indexed by data.
extern "C" __global__ void local_array(const unsigned char* digits, unsigned char* sorted, int length) {
    int counts[10] = {};
    const unsigned char* row = digits + (blockIdx.x * blockDim.x + threadIdx.x) * length;
    unsigned char* to = sorted + (blockIdx.x * blockDim.x + threadIdx.x) * length;
    for (int i = 0; i < length; ++i) counts[row[i]]++;
    int at = 0;
    for (int d = 0; d < 10; ++d)
        for (int k = 0; k < counts[d]; ++k) to[at++] = d;
}

// A switch wide enough for a table of jumps, in a machine for little programs.
extern "C" __global__ void stack_machine(const unsigned char* code, int length, int* results) {
    int stack[16], top = 0;
    for (int pc = 0; pc < length; ++pc) {
        switch (code[pc]) {
            case 0: stack[top++] = threadIdx.x; break;
            case 1: stack[top - 2] += stack[top - 1]; --top; break;
            case 2: stack[top - 2] *= stack[top - 1]; --top; break;
            case 3: stack[top] = stack[top - 1]; ++top; break;
            case 4: stack[top - 1] = -stack[top - 1]; break;
            case 5: stack[top - 1] ^= 0x55; break;
            case 6: stack[top - 2] -= stack[top - 1]; --top; break;
            case 7: stack[top++] = blockIdx.x + 1; break;
            case 8: stack[top - 1] >>= 1; break;
            default: stack[top++] = code[pc]; break;
        }
    }
    results[blockIdx.x * blockDim.x + threadIdx.x] = stack[top - 1];
}
