// CUDA arrays, textures and surfaces. Rows of an array have no gaps, and an array is an allocation of its own.
#include "runtime.h"

typedef struct { Allocation *memory; struct cudaChannelFormatDesc format; struct cudaExtent extent; unsigned flags; int levels; Allocation **level; } Array;

static size_t texel(const struct cudaChannelFormatDesc *f) { return (f->x + f->y + f->z + f->w) / 8; }
static size_t or_one(size_t extent) { return extent ? extent : 1; }

API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind) {
  return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
API cudaError_t cudaMalloc3DArray(cudaArray_t *into, const struct cudaChannelFormatDesc *format, struct cudaExtent extent, unsigned flags) {
  ALIVE;
  Array *made = calloc(1, sizeof *made);
  *made = (Array){.format = *format, .extent = extent, .flags = flags, .levels = 1};
  made->memory = allocate(texel(format) * extent.width * or_one(extent.height) * or_one(extent.depth), ARRAY);
  CHECKED(made->memory, cudaErrorMemoryAllocation);
  *into = (cudaArray_t)made;
  return cudaSuccess;
}
API cudaError_t cudaMallocArray(cudaArray_t *into, const struct cudaChannelFormatDesc *format, size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(into, format, (struct cudaExtent){width, height, 0}, flags);
}
API cudaError_t cudaFreeArray(cudaArray_t array) {
  ALIVE;
  return array ? release((void *)((Array *)array)->memory->base, "cudaFreeArray", 1u << ARRAY) : cudaSuccess;
}
API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned *flags, cudaArray_t array) {
  ALIVE;
  Array *one = (Array *)array;
  if (format) *format = one->format;
  if (extent) *extent = one->extent;
  if (flags) *flags = one->flags;
  return cudaSuccess;
}
API cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *into, cudaArray_const_t array) { ALIVE; *into = ((const Array *)array)->format; return cudaSuccess; }

static size_t row_of(const Array *a) { return texel(&a->format) * a->extent.width; }
static size_t slice_of(const Array *a) { return row_of(a) * or_one(a->extent.height); }

Operation copy_3d(const struct cudaMemcpy3DParms *p, const char *name) {
  const Array *to = (const Array *)p->dstArray, *from = (const Array *)p->srcArray;
  size_t unit = to ? texel(&to->format) : from ? texel(&from->format) : 1;
  Operation o = {.kind = COPY, .name = name, .width = p->extent.width * unit, .height = or_one(p->extent.height),
                 .depth = or_one(p->extent.depth), .direction = p->kind};
  o.to_pitch = to ? row_of(to) : p->dstPtr.pitch, o.to_slice = to ? slice_of(to) : p->dstPtr.pitch * p->dstPtr.ysize;
  o.from_pitch = from ? row_of(from) : p->srcPtr.pitch, o.from_slice = from ? slice_of(from) : p->srcPtr.pitch * p->srcPtr.ysize;
  o.to = (to ? (char *)to->memory->base : (char *)p->dstPtr.ptr) + p->dstPos.z * o.to_slice + p->dstPos.y * o.to_pitch +
         p->dstPos.x * (to ? unit : 1);
  o.from = (from ? (char *)from->memory->base : (char *)p->srcPtr.ptr) + p->srcPos.z * o.from_slice + p->srcPos.y * o.from_pitch +
           p->srcPos.x * (from ? unit : 1);
  return o;
}

static cudaError_t now(Operation o) {
  ALIVE;
  synchronized_all();
  cudaError_t error = settled();
  return error ? error : perform_memory(&o, false, 0);
}
static cudaError_t later(Operation o, cudaStream_t stream) { ALIVE; return issue(&o, stream); }

API cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { return now(copy_3d(p, "cudaMemcpy3D")); }
API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream) { return later(copy_3d(p, "cudaMemcpy3DAsync"), stream); }

static Operation with_array(const char *name, const Array *a, size_t x, size_t y, const void *other, size_t pitch, size_t width, size_t height,
                            enum cudaMemcpyKind kind, bool is_to) {
  char *place = (char *)a->memory->base + y * row_of(a) + x;
  Operation o = {.kind = COPY, .name = name, .width = width, .height = height, .depth = 1, .direction = kind};
  o.to = is_to ? place : (void *)other, o.from = is_to ? other : place;
  o.to_pitch = is_to ? row_of(a) : pitch, o.from_pitch = is_to ? pitch : row_of(a);
  return o;
}
API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                                    enum cudaMemcpyKind kind) {
  return now(with_array("cudaMemcpy2DToArray", (Array *)to, x, y, from, pitch, width, height, kind, true));
}
API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                                         enum cudaMemcpyKind kind, cudaStream_t stream) {
  return later(with_array("cudaMemcpy2DToArrayAsync", (Array *)to, x, y, from, pitch, width, height, kind, true), stream);
}
API cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                                      enum cudaMemcpyKind kind) {
  return now(with_array("cudaMemcpy2DFromArray", (const Array *)from, x, y, to, pitch, width, height, kind, false));
}
API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size, enum cudaMemcpyKind kind) {
  return now(with_array("cudaMemcpyToArray", (Array *)to, x, y, from, size, size, 1, kind, true));
}
API cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size, enum cudaMemcpyKind kind) {
  return now(with_array("cudaMemcpyFromArray", (const Array *)from, x, y, to, size, size, 1, kind, false));
}

// What the session is to make a texture or surface of: where texels are, their format, extents, and how they are read.
static cudaError_t object(unsigned long long *into, const struct cudaResourceDesc *from, const struct cudaTextureDesc *how) {
  ALIVE;
  Bytes bytes = {0}, answer;
  struct cudaChannelFormatDesc format;
  struct cudaExtent extent = {0, 0, 0};
  uint64_t base, pitch = 0;
  unsigned flags = 0;
  if (from->resType == cudaResourceTypeArray) {
    const Array *array = (const Array *)from->res.array.array;
    format = array->format, extent = array->extent, base = array->memory->base, flags = array->flags;
  } else if (from->resType == cudaResourceTypeLinear) {
    format = from->res.linear.desc, base = (uint64_t)from->res.linear.devPtr;
    extent.width = from->res.linear.sizeInBytes / texel(&format);
  } else if (from->resType == cudaResourceTypePitch2D) {
    format = from->res.pitch2D.desc, base = (uint64_t)from->res.pitch2D.devPtr, pitch = from->res.pitch2D.pitchInBytes;
    extent.width = from->res.pitch2D.width, extent.height = from->res.pitch2D.height;
  } else unsupported("cudaCreateTextureObject of a mipmap");
  put_number(&bytes, from->resType);
  put_number(&bytes, base);
  put_number(&bytes, pitch);
  put_number(&bytes, extent.width), put_number(&bytes, extent.height), put_number(&bytes, extent.depth);
  put_number(&bytes, format.f), put_number(&bytes, format.x);
  put_number(&bytes, (format.x > 0) + (format.y > 0) + (format.z > 0) + (format.w > 0));
  put_number(&bytes, flags);
  put_number(&bytes, how != 0);
  struct cudaTextureDesc none = {0};
  if (!how) how = &none;
  for (int i = 0; i < 3; i++) put_number(&bytes, how->addressMode[i]);
  put_number(&bytes, how->filterMode), put_number(&bytes, how->readMode), put_number(&bytes, how->sRGB);
  put_number(&bytes, how->normalizedCoords);
  put(&bytes, how->borderColor, 16);
  int status = ask(REQUEST_TEXTURE, &bytes, &answer);
  *into = take_number(&answer);
  free(answer.data);
  return fail(status);
}
API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *into, const struct cudaResourceDesc *from, const struct cudaTextureDesc *how,
                                        const struct cudaResourceViewDesc *view) {
  if (view) unsupported("cudaCreateTextureObject with a cudaResourceViewDesc");
  return object(into, from, how);
}
API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *into, const struct cudaResourceDesc *from) { return object(into, from, 0); }
static cudaError_t forget(unsigned long long handle) {
  ALIVE;
  Bytes bytes = {0};
  put_number(&bytes, handle);
  notify(REQUEST_NO_TEXTURE, &bytes);
  return cudaSuccess;
}
API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) { return forget(handle); }
API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) { return forget(handle); }
