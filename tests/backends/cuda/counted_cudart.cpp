// The CUDA runtime as far as an emitted program calls it, without a device: kernels do nothing, memory of the device is the host's, and
// what is asked of which stream is written down in the file that SNNC_HOST_STREAMS names.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

std::map<const char *, std::size_t> &on_device() {
  static std::map<const char *, std::size_t> rooms;
  return rooms;
}

cudaError_t note(const char *what, cudaStream_t in = nullptr) {
  if (const char *path = std::getenv("SNNC_HOST_STREAMS"))
    if (std::FILE *file = std::fopen(path, "a")) {
      std::fprintf(file, "%s %zu\n", what, reinterpret_cast<std::size_t>(in));
      std::fclose(file);
    }
  return cudaSuccess;
}

bool is_on_device(const void *memory) {
  const char *place = static_cast<const char *>(memory);
  const auto behind = on_device().upper_bound(place);
  return behind != on_device().begin() && place < std::prev(behind)->first + std::prev(behind)->second;
}

} // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *) { return cudaSuccess; }
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *) { return cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t in) { return note("launch", in); }

cudaError_t cudaGetDeviceCount(int *count) { return *count = 2, cudaSuccess; }
static thread_local int device_now = 0;
cudaError_t cudaGetDevice(int *device) { return *device = device_now, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device_now = device, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int) { return *found = {}, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int) {
  *value = which == cudaDevAttrMultiProcessorCount ? 132 : which == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 232448 : 1;
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t) { return "none"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned) { return *blocks = 1, cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *, const cudaLaunchConfig_t *) { return *clusters = 132, cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *memory) {
  return found->type = is_on_device(memory) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, cudaSuccess;
}

cudaError_t cudaMalloc(void **to, size_t bytes) {
  *to = std::calloc(1, bytes);
  on_device()[static_cast<char *>(*to)] = bytes;
  return note("allocate");
}
cudaError_t cudaFree(void *memory) {
  on_device().erase(static_cast<char *>(memory));
  std::free(memory);
  return note("free");
}
cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned) { return *to = std::calloc(1, bytes), cudaSuccess; }
cudaError_t cudaMallocHost(void **to, size_t bytes) { return *to = std::calloc(1, bytes), cudaSuccess; }
cudaError_t cudaFreeHost(void *memory) { return std::free(memory), cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t in) {
  std::memmove(to, from, bytes);
  return note("copy", in);
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t in) {
  std::memset(to, value, bytes);
  return note("clear", in);
}

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t in) { return note("launch", in); }
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t in) { return note("launch", in); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *, void **) { return note("launch", config->stream); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned) { return *made = reinterpret_cast<cudaStream_t>(std::size_t(1) << 32), cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) { return *status = cudaStreamCaptureStatusNone, cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return cudaErrorNotSupported; }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) { return *graph = nullptr, cudaErrorNotSupported; }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *, cudaGraph_t, unsigned long long) { return cudaErrorNotSupported; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t in) { return note("launch", in); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t in) { return note("wait", in); }
cudaError_t cudaStreamWaitEvent(cudaStream_t in, cudaEvent_t, unsigned) { return note("hold", in); }
cudaError_t cudaDeviceSynchronize() { return note("wait for all"); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned) { return *made = nullptr, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t in) { return note("record", in); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return note("wait for an event"); }
}
