// Control flow: dense and sparse switches, early exits, nested loops with break and continue, goto, unstructured joins.
// make: sm_75 sm_80 sm_90a sm_100a
// make: sm_80 -G
// make: sm_75 -lineinfo
// make: sm_80 nvcc-13.4

extern "C" __global__ void dense_switch(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i], r = out[i];
    switch (x) {
        case 0: r += x * 3; break;
        case 1: r ^= out[i + 1]; break;
        case 2: r = r / (x + 7);
        case 3: r -= 5; break;
        case 4: r = __popc(r); break;
        case 5: r = __clz(r) << 3; break;
        case 6: for (int k = 0; k < r; ++k) r ^= k * x; break;
        case 7: out[i] = -1; return;
        case 8: r = __brev(r); break;
        case 9: r = r > 0 ? -r : r * r; break;
        case 10: r = in[(i + r) % n]; break;
        case 11: r %= 17; break;
        default: r = ~r;
    }
    out[i] = r;
}

extern "C" __global__ void sparse_switch(const unsigned* in, unsigned* out) {
    unsigned x = in[threadIdx.x];
    switch (x) {
        case 7: x = 1; break;
        case 1000: x *= 3; break;
        case 65536: x ^= 0x5555; break;
        case 0xdeadbeef: x = 0; break;
        default: x += 11;
    }
    out[threadIdx.x] = x;
}

extern "C" __global__ void interpreter(const unsigned char* code, int length, long long* stack, long long* result) {
    // A stack machine: a loop around a dense switch becomes brx.idx.
    long long a = 0;
    int top = 0, at = 0;
    while (at < length) {
        unsigned char op = code[at++];
        switch (op & 15) {
            case 0: stack[top++] = a; break;
            case 1: a = stack[--top]; break;
            case 2: a += stack[--top]; break;
            case 3: a -= stack[--top]; break;
            case 4: a *= stack[--top]; break;
            case 5: if (a == 0) at = code[at]; else ++at; break;
            case 6: at = code[at]; break;
            case 7: a = code[at++]; break;
            case 8: a <<= 1; break;
            case 9: a = -a; break;
            case 10: a = a > stack[top - 1]; break;
            case 11: goto done;
            case 12: a &= stack[--top]; break;
            case 13: if (top > 100) { *result = -1; return; } break;
            case 14: a = a / (stack[--top] | 1); break;
            case 15: break;
        }
    }
done:
    *result = a;
}

extern "C" __global__ void nested(const int* in, int* out, int rows, int columns) {
    int found = -1;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
        for (int c = 0; c < columns; ++c) {
            int v = in[r * columns + c];
            if (v < 0) continue;
            if (v == 42) { found = c; goto out_of_both; }
            int steps = 0;
            do { v = v & 1 ? 3 * v + 1 : v >> 1; } while (v > 1 && ++steps < 1000);
            if (steps > 500) break;
            found = max(found, steps);
        }
    }
out_of_both:
    out[threadIdx.x] = found;
    if (found == 0x7fffffff) __trap();
    if (found == 0x7ffffffe) asm volatile("brkpt;");
    if (found == 0x7ffffffd) asm volatile("exit;");
}

extern "C" __global__ void short_circuit(const float* a, const int* b, int* out, int n) {
    int i = threadIdx.x;
    bool inside = i < n && a[i] > 0.0f && (b[i] == 3 || (b[i] & 4 && a[i] < 10.0f)) && !(b[i] == 9 && a[i] == 1.0f);
    out[i] = inside ? (a[i] > 5.0f ? b[i] : -b[i]) : 0;
}
