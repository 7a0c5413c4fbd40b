// Arrays, textures and surfaces of the driver API, over those of the runtime, and copies of two and three dimensions.
#include "runtime.h"

// The format of a channel: of a half its bits are told from those of an integer by the kind.
static struct cudaChannelFormatDesc channels(CUarray_format format, unsigned count) {
  int bits = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8 ? 8
           : format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16 || format == CU_AD_FORMAT_HALF ? 16 : 32;
  enum cudaChannelFormatKind kind = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT ? cudaChannelFormatKindFloat
                                  : format >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned;
  if (format > CU_AD_FORMAT_FLOAT) unsupported("an array of a packed or compressed format");
  return (struct cudaChannelFormatDesc){bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0, kind};
}

static CUresult result(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? CUDA_ERROR_OUT_OF_MEMORY : error && error < 100 ? CUDA_ERROR_INVALID_VALUE : (CUresult)error;
}

API CUresult cuArray3DCreate(CUarray *into, const CUDA_ARRAY3D_DESCRIPTOR *from) {
  struct cudaChannelFormatDesc format = channels(from->Format, from->NumChannels);
  return result(cudaMalloc3DArray((cudaArray_t *)into, &format, (struct cudaExtent){from->Width, from->Height, from->Depth}, from->Flags));
}
API CUresult cuArrayCreate(CUarray *into, const CUDA_ARRAY_DESCRIPTOR *from) {
  return cuArray3DCreate(into, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = from->Width, .Height = from->Height, .Format = from->Format, .NumChannels = from->NumChannels});
}
API CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *into, CUarray array) {
  static const CUarray_format formats[3][3] = {  // by the kind, and by 8, 16 and 32 bits
      {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
      {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
      {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};
  struct cudaChannelFormatDesc format;
  struct cudaExtent extent;
  unsigned flags;
  cudaError_t error = cudaArrayGetInfo(&format, &extent, &flags, (cudaArray_t)array);
  if (error) return result(error);
  *into = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags,
                                    .NumChannels = (format.x > 0) + (format.y > 0) + (format.z > 0) + (format.w > 0),
                                    .Format = formats[format.f][format.x / 16]};
  return CUDA_SUCCESS;
}
API CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *into, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR whole;
  CUresult error = cuArray3DGetDescriptor(&whole, array);
  if (!error) *into = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return error;
}
API CUresult cuArrayDestroy(CUarray array) { return result(cudaFreeArray((cudaArray_t)array)); }

// One side of a copy: as a pitched pointer, or as an array.
static void side(struct cudaPitchedPtr *pointer, cudaArray_t *array, struct cudaPos *at, CUmemorytype type, const void *host, CUdeviceptr device,
                 CUarray from, size_t pitch, size_t height, size_t x, size_t y, size_t z, size_t texel) {
  bool is_array = type == CU_MEMORYTYPE_ARRAY;
  *at = (struct cudaPos){is_array ? x / texel : x, y, z};
  if (is_array) *array = (cudaArray_t)from;
  else *pointer = (struct cudaPitchedPtr){type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)device, pitch, pitch, height};
}
static size_t texel_of(CUmemorytype type, CUarray array) {
  struct cudaChannelFormatDesc format;
  if (type != CU_MEMORYTYPE_ARRAY || cudaGetChannelDesc(&format, (cudaArray_const_t)array)) return 1;
  return (format.x + format.y + format.z + format.w) / 8;
}
static CUresult copied(const CUDA_MEMCPY3D *c, bool later, CUstream stream) {
  struct cudaMemcpy3DParms p = {.kind = cudaMemcpyDefault};
  size_t to = texel_of(c->dstMemoryType, c->dstArray), from = texel_of(c->srcMemoryType, c->srcArray);
  side(&p.srcPtr, &p.srcArray, &p.srcPos, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcPitch, c->srcHeight,
       c->srcXInBytes, c->srcY, c->srcZ, from);
  side(&p.dstPtr, &p.dstArray, &p.dstPos, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstPitch, c->dstHeight,
       c->dstXInBytes, c->dstY, c->dstZ, to);
  p.extent = (struct cudaExtent){c->WidthInBytes / (p.dstArray ? to : from), c->Height, c->Depth};
  return result(later ? cudaMemcpy3DAsync(&p, stream) : cudaMemcpy3D(&p));
}
static CUDA_MEMCPY3D flat(const CUDA_MEMCPY2D *c) {
  size_t to = c->dstPitch ? c->dstPitch : c->WidthInBytes, from = c->srcPitch ? c->srcPitch : c->WidthInBytes;
  return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost, .srcDevice = c->srcDevice,
                         .srcArray = c->srcArray, .srcPitch = from, .srcHeight = c->Height, .dstXInBytes = c->dstXInBytes, .dstY = c->dstY,
                         .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost, .dstDevice = c->dstDevice, .dstArray = c->dstArray, .dstPitch = to,
                         .dstHeight = c->Height, .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1};
}
API CUresult cuMemcpy3D(const CUDA_MEMCPY3D *copy) { return copied(copy, false, 0); }
API CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream) { return copied(copy, true, stream); }
API CUresult cuMemcpy2D(const CUDA_MEMCPY2D *copy) { CUDA_MEMCPY3D whole = flat(copy); return copied(&whole, false, 0); }
API CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *copy) { return cuMemcpy2D(copy); }
API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream) { CUDA_MEMCPY3D whole = flat(copy); return copied(&whole, true, stream); }

static struct cudaResourceDesc resource(const CUDA_RESOURCE_DESC *from) {
  struct cudaResourceDesc made = {.resType = (enum cudaResourceType)from->resType};
  if (from->resType == CU_RESOURCE_TYPE_ARRAY) made.res.array.array = (cudaArray_t)from->res.array.hArray;
  if (from->resType == CU_RESOURCE_TYPE_LINEAR) {
    made.res.linear.devPtr = (void *)from->res.linear.devPtr, made.res.linear.sizeInBytes = from->res.linear.sizeInBytes;
    made.res.linear.desc = channels(from->res.linear.format, from->res.linear.numChannels);
  }
  if (from->resType == CU_RESOURCE_TYPE_PITCH2D) {
    made.res.pitch2D.devPtr = (void *)from->res.pitch2D.devPtr, made.res.pitch2D.desc = channels(from->res.pitch2D.format, from->res.pitch2D.numChannels);
    made.res.pitch2D.width = from->res.pitch2D.width, made.res.pitch2D.height = from->res.pitch2D.height;
    made.res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
  }
  return made;
}
API CUresult cuTexObjectCreate(CUtexObject *into, const CUDA_RESOURCE_DESC *from, const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view) {
  if (view) unsupported("cuTexObjectCreate with a CUDA_RESOURCE_VIEW_DESC");
  struct cudaResourceDesc texels = resource(from);
  struct cudaTextureDesc reading = {.filterMode = (enum cudaTextureFilterMode)how->filterMode, .normalizedCoords = !!(how->flags & CU_TRSF_NORMALIZED_COORDINATES),
                                    .sRGB = !!(how->flags & CU_TRSF_SRGB)};
  for (int i = 0; i < 3; i++) reading.addressMode[i] = (enum cudaTextureAddressMode)how->addressMode[i];
  memcpy(reading.borderColor, how->borderColor, sizeof reading.borderColor);
  struct cudaChannelFormatDesc format = texels.resType == cudaResourceTypeLinear ? texels.res.linear.desc : texels.res.pitch2D.desc;
  if (texels.resType == cudaResourceTypeArray) cudaGetChannelDesc(&format, texels.res.array.array);
  bool is_number = format.f != cudaChannelFormatKindFloat && format.x < 32 && !(how->flags & CU_TRSF_READ_AS_INTEGER);
  reading.readMode = is_number ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  return result(cudaCreateTextureObject(into, &texels, &reading, 0));
}
API CUresult cuTexObjectDestroy(CUtexObject object) { return result(cudaDestroyTextureObject(object)); }
API CUresult cuSurfObjectCreate(CUsurfObject *into, const CUDA_RESOURCE_DESC *from) {
  struct cudaResourceDesc texels = resource(from);
  return result(cudaCreateSurfaceObject(into, &texels));
}
API CUresult cuSurfObjectDestroy(CUsurfObject object) { return result(cudaDestroySurfaceObject(object)); }
