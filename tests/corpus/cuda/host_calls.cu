// What device code asks of the runtime: printf, assert, malloc and free, alloca, abort, memcpy of structures.
// make: sm_75 sm_80 sm_90a
// make: sm_80 -G
// make: sm_80 -lineinfo
// make: sm_80 -rdc=true
// make: sm_80 nvcc-13.4
#include <cassert>
#include <cstdio>
#include <cstring>

__global__ void print(const float* x, const char* name, long long big) {
    printf("no arguments\n");
    printf("thread %d of %s: %f %g %lld 100%%\n", threadIdx.x, name, x[threadIdx.x], (double)x[0] * 2, big);
}

__global__ void check(const int* x, int n) {
    assert(n > 0 && "n must be positive");
    assert(x[threadIdx.x] >= 0);
    if (x[0] == 77) __builtin_unreachable();
}

struct Node { int key; Node* left; Node* right; };

__device__ Node* insert(Node* root, int key) {
    Node** at = &root;
    while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = static_cast<Node*>(malloc(sizeof(Node)));
    if (!*at) { printf("out of memory\n"); __trap(); }
    **at = Node{key, nullptr, nullptr};
    return root;
}
__device__ __noinline__ int release(Node* node) {
    if (!node) return 0;
    int n = release(node->left) + release(node->right) + 1;
    free(node);
    return n;
}
__global__ void tree(const int* keys, int n, int* count) {
    Node* root = nullptr;
    for (int i = 0; i < n; ++i) root = insert(root, keys[i]);
    *count = release(root);
}

__global__ void scratch(int n, int* out) {
    int* a = static_cast<int*>(alloca(n * sizeof(int)));
    for (int i = 0; i < n; ++i) a[i] = i * i;
    int* b = new int[n];
    memcpy(b, a, n * sizeof(int));
    memset(a, 0x5a, n * sizeof(int));
    out[threadIdx.x] = a[0] + b[n - 1] + (int)strlen("static");
    delete[] b;
}
