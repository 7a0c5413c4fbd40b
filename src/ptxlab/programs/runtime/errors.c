// Errors as CUDA reports them: of a call, of the launch before it, and of kernels, which stay.
#include "runtime.h"

cudaError_t sticky;
static cudaError_t coming;  // of a kernel that has run, which the host has not waited for
static __thread cudaError_t last;
static struct { cudaError_t error; char kernel[200], why[100]; void *frames[FRAMES]; int count; } unchecked;

cudaError_t fail(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last = error;
  return error;
}

void fail_later(cudaError_t error) { if (!coming) coming = error; }

cudaError_t settled(void) {
  if (coming && !sticky) sticky = coming;
  return sticky ? fail(sticky) : cudaSuccess;
}

// `why` is empty, or more than the error says.
void launch_failed(cudaError_t error, const char *kernel, const char *why) {
  note_unchecked();
  unchecked.error = error;
  snprintf(unchecked.kernel, sizeof unchecked.kernel, "%s", kernel);
  snprintf(unchecked.why, sizeof unchecked.why, "%s", why);
  unchecked.count = frames_here(unchecked.frames);
}

// By a call that has returned the error, which the program may have expected.
void launch_refused(cudaError_t error, const char *kernel, const char *why) {
  char message[500];
  snprintf(message, sizeof message, "the launch of `%s` fails with %s (%d), which the call returns%s", kernel, cudaGetErrorName(error), error, why);
  finding("failed-launch", message, 0, 0);
}

void note_unchecked(void) {
  if (!unchecked.error) return;
  char message[500];
  snprintf(message, sizeof message, "the launch of `%s` failed with %s (%d), and the program did not check%s",
           unchecked.kernel, cudaGetErrorName(unchecked.error), unchecked.error, unchecked.why);
  finding_at("unchecked-error", message, 0, "check `cudaGetLastError()` after the launch", unchecked.frames, unchecked.count);
  unchecked.error = cudaSuccess;
}

API cudaError_t cudaGetLastError(void) {
  cudaError_t found = sticky ? sticky : last;
  last = cudaSuccess;
  unchecked.error = cudaSuccess;
  return found;
}

API cudaError_t cudaPeekAtLastError(void) {
  unchecked.error = cudaSuccess;
  return sticky ? sticky : last;
}

// The texts are those of the CUDA runtime.
static const struct { int code; const char *name, *text; } known[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {4, "cudaErrorCudartUnloading", "driver shutting down"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {18, "cudaErrorInvalidTexture", "invalid texture reference"},
    {20, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "cudaErrorDevicesUnavailable", "all CUDA-capable devices are busy or unavailable"},
    {52, "cudaErrorMissingConfiguration", "__global__ function call is not configured"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
    {217, "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {222, "cudaErrorUnsupportedPtxVersion", "the provided PTX was compiled with an unsupported toolchain."},
    {301, "cudaErrorFileNotFound", "file not found"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {714, "cudaErrorHardwareStackError", "hardware stack error"},
    {715, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {717, "cudaErrorInvalidAddressSpace", "operation not supported on global/shared address space"},
    {718, "cudaErrorInvalidPc", "invalid program counter"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {800, "cudaErrorNotPermitted", "operation not permitted"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {905, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"},
    {906, "cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on a capturing blocking stream"},
    {909, "cudaErrorTimeout", "wait operation timed out"},
    {910, "cudaErrorGraphExecUpdateFailure", "the graph update was not performed because it included changes which violated "
                                             "constraints specific to instantiated graph update"},
    {912, "cudaErrorInvalidClusterSize", "cluster misconfiguration"},
    {999, "cudaErrorUnknown", "unknown error"},
};

API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].code == (int)error) return known[i].name;
  return "unrecognized error code";
}

API const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].code == (int)error) return known[i].text;
  return "unrecognized error code";
}
