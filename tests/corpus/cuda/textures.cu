// Texture and surface objects: every dimension, arrays, cubes, levels of detail, gradients, gathers, all boundary modes.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_100a nvcc-13.4

__global__ void sample(cudaTextureObject_t t, float4* out) {
    float x = threadIdx.x * 0.25f, y = threadIdx.y * 0.5f, z = threadIdx.z;
    float4 r = tex1D<float4>(t, x), s;
    auto add = [&](float4 v) { r.x += v.x; r.y += v.y; r.z += v.z; r.w += v.w; };
    add(tex2D<float4>(t, x, y)); add(tex3D<float4>(t, x, y, z)); add(tex1DLayered<float4>(t, x, 2)); add(tex2DLayered<float4>(t, x, y, 3));
    add(texCubemap<float4>(t, x, y, z)); add(texCubemapLayered<float4>(t, x, y, z, 1));
    add(tex1DLod<float4>(t, x, 1.5f)); add(tex2DLod<float4>(t, x, y, 2.0f)); add(tex3DLod<float4>(t, x, y, z, 0.5f)); add(tex2DLayeredLod<float4>(t, x, y, 1, 0.5f));
    add(tex1DGrad<float4>(t, x, 0.1f, 0.2f)); add(tex2DGrad<float4>(t, x, y, make_float2(1, 0), make_float2(0, 1)));
    add(tex3DGrad<float4>(t, x, y, z, make_float4(1, 0, 0, 0), make_float4(0, 1, 0, 0)));
    add(texCubemapLod<float4>(t, x, y, z, 2.0f));
    s = tex2Dgather<float4>(t, x, y, 0); add(s);
    s = tex2Dgather<float4>(t, x, y, 3); add(s);
    out[threadIdx.x] = r;
}

__global__ void fetch(cudaTextureObject_t t, int4* out, unsigned* u) {
    int i = threadIdx.x;
    int4 r = tex1Dfetch<int4>(t, i);
    uint2 v = tex1Dfetch<uint2>(t, i + 1);
    unsigned char c = tex2D<unsigned char>(t, i, 1);
    short2 s = tex3D<short2>(t, i, 1, 2);
    out[i] = r;
    u[i] = v.x + v.y + c + s.x * s.y;
    bool resident;
    float w = tex2D<float>(t, i, 0.5f, &resident);
    if (resident) u[i] += w;
}

__global__ void surfaces(cudaSurfaceObject_t s, float4* out) {
    int x = threadIdx.x * 16, y = threadIdx.y, z = threadIdx.z;
    float4 r = surf2Dread<float4>(s, x, y);
    float2 a = surf1Dread<float2>(s, x, cudaBoundaryModeClamp);
    int b = surf3Dread<int>(s, x, y, z, cudaBoundaryModeZero);
    unsigned char c = surf1DLayeredread<unsigned char>(s, x, 1);
    short2 d = surf2DLayeredread<short2>(s, x, y, 2);
    long long e = surf2Dread<long long>(s, x, y, cudaBoundaryModeTrap);
    r.x += a.x + b; r.y += a.y + c; r.z += d.x + d.y; r.w += e;
    surf1Dwrite(r, s, x);
    surf2Dwrite(r.x, s, x, y, cudaBoundaryModeClamp);
    surf3Dwrite(make_int2(b, b), s, x, y, z, cudaBoundaryModeZero);
    surf1DLayeredwrite(c, s, x, 3);
    surf2DLayeredwrite(make_uint4(1, 2, 3, 4), s, x, y, 1);
    out[threadIdx.x] = r;
}

__global__ void queries(cudaTextureObject_t t, cudaSurfaceObject_t s, int* out) {
    int w, h, d, channels, order, width, address;
    asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
    asm("txq.height.b32 %0, [%1];" : "=r"(h) : "l"(t));
    asm("txq.depth.b32 %0, [%1];" : "=r"(d) : "l"(t));
    asm("txq.channel_order.b32 %0, [%1];" : "=r"(order) : "l"(t));
    asm("txq.channel_data_type.b32 %0, [%1];" : "=r"(channels) : "l"(t));
    asm("suq.width.b32 %0, [%1];" : "=r"(width) : "l"(s));
    asm("suq.array_size.b32 %0, [%1];" : "=r"(address) : "l"(s));
    asm volatile("sured.b.2d.add.u32.trap [%0, {%1, %2}], %3;" :: "l"(s), "r"(w), "r"(h), "r"(d));
    out[threadIdx.x] = w + h + d + channels + order + width + address;
}

// Bilinear resize through a texture.
__global__ void resize(cudaTextureObject_t in, uchar4* out, int width, int height, float sx, float sy) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float4 c = tex2D<float4>(in, (x + 0.5f) * sx, (y + 0.5f) * sy);
    out[y * width + x] = make_uchar4(c.x * 255, c.y * 255, c.z * 255, c.w * 255);
}
