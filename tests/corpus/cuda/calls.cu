// Calls of every kind: not inlined, recursive, through pointers and virtual tables, structures by value, stack use.
// make: sm_75 sm_80 sm_90a
// make: sm_80 -G
// make: sm_80 -rdc=true
// make: sm_120a -lineinfo
// make: sm_80 sm_120a nvcc-13.4
// make: sm_80 nvcc-13.4 -G

struct Small { char tag; short half; };
struct Large { double values[5]; int count; };

__device__ __noinline__ Small make_small(int x) { return {char(x), short(x * 3)}; }

__device__ __noinline__ Large scale(Large in, double factor) {
    for (int i = 0; i < in.count; ++i) in.values[i % 5] *= factor;
    return in;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int is_odd(unsigned n);
__device__ __noinline__ int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

typedef float (*Operation)(float, float);
__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float subtract(float a, float b) { return a - b; }
__device__ __noinline__ float multiply(float a, float b) { return a * b; }
__device__ Operation operations[] = {add, subtract, multiply};

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual void grow(float factor) = 0;
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159265f * radius * radius; }
    __device__ void grow(float factor) override { radius *= factor; }
};
struct Box : Shape {
    float width, height;
    __device__ Box(float w, float h) : width(w), height(h) {}
    __device__ float area() const override { return width * height; }
    __device__ void grow(float factor) override { width *= factor; height *= factor; }
};

__global__ void direct(int* out, Large by_value, Small small) {
    int i = threadIdx.x;
    Large scaled = scale(by_value, i);
    Small s = make_small(i + small.half);
    out[i] = s.tag + s.half + (int)scaled.values[i % 5] + fibonacci(i & 15) + is_even(i);
}

__global__ void through_pointer(float* out, const int* which, const float* a, const float* b) {
    int i = threadIdx.x;
    out[i] = operations[which[i] % 3](a[i], b[i]);
}

__global__ void through_table(float* out, int n) {
    int i = threadIdx.x;
    Shape* shape = i % 2 ? static_cast<Shape*>(new Circle(i)) : new Box(i, i + 1);
    for (int k = 0; k < n; ++k) shape->grow(1.5f);
    out[i] = shape->area();
    delete shape;
}

template <typename F> __device__ __noinline__ int twice(F f, int x) { return f(f(x)); }
__global__ void lambdas(int* out, int bias) {
    int i = threadIdx.x;
    out[i] = twice([bias](int x) { return x * 2 + bias; }, i) + twice([&](int x) { return x ^ out[i]; }, i);
}
