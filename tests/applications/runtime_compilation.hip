// A kernel that the program compiles at run time (hiprtc) for the current device.
#include "check.h"

#include <hip/hiprtc.h>

const char *const source = R"(
template <int factor> __device__ int scaled(int value) { return value * factor; }

extern "C" __global__ void scale_and_add(const int *in, int *out, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = scaled<FACTOR>(in[i]) + addend;
}
)";

#define RTC(call)                                                                                  \
    do {                                                                                           \
        hiprtcResult result_ = (call);                                                             \
        EXPECT(result_ == HIPRTC_SUCCESS, "%s: %s", #call, hiprtcGetErrorString(result_));         \
    } while (0)

int main() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    hiprtcProgram program;
    RTC(hiprtcCreateProgram(&program, source, "scale.hip", 0, nullptr, nullptr));
    std::string target = std::string("--offload-arch=") + properties.gcnArchName;
    const char *options[] = {target.c_str(), "-DFACTOR=7"};
    hiprtcResult result = hiprtcCompileProgram(program, 2, options);
    size_t bytes = 0;
    RTC(hiprtcGetProgramLogSize(program, &bytes));
    std::string messages(bytes, ' ');
    if (bytes > 0)
        RTC(hiprtcGetProgramLog(program, &messages[0]));
    EXPECT(result == HIPRTC_SUCCESS, "the kernel does not compile:\n%s", messages.c_str());
    RTC(hiprtcGetCodeSize(program, &bytes));
    std::vector<char> code(bytes);
    RTC(hiprtcGetCode(program, code.data()));
    RTC(hiprtcDestroyProgram(&program));

    hipModule_t module;
    hipFunction_t kernel;
    HIP(hipModuleLoadData(&module, code.data()));
    HIP(hipModuleGetFunction(&kernel, module, "scale_and_add"));
    const int count = 512;
    std::vector<int> in(count), expected(count);
    for (int i = 0; i < count; i++) {
        in[i] = i * 3;
        expected[i] = in[i] * 7 - 1;
    }
    int *device_in = to_device(in), *device_out = to_device(in), addend = -1;
    void *arguments[] = {&device_in, &device_out, &addend};
    HIP(hipModuleLaunchKernel(kernel, count / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    expect_equal("scaled", from_device(device_out, count), expected);
    HIP(hipModuleUnload(module));
    HIP(hipFree(device_in));
    HIP(hipFree(device_out));
    return passed();
}
