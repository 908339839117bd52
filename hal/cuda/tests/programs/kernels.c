// Attributes and launches of kernels, cooperative launches, output of kernels, and addresses of functions.
#include "driver.h"

int main(int count, char **arguments)
{
    int found, version;
    EXPECT(3, cuDeviceGetCount(&found));
    CUmodule module = start(arguments[1]);
    CALL(cuDriverGetVersion(&version));
    CHECK(version >= 12000);
    CALL(cuDeviceGetCount(&found));
    CHECK(found == 1);
    EXPECT(101, cuDeviceGet(&found, 1));
    char name[64];
    CALL(cuDeviceGetName(name, sizeof name, 0));
    CHECK(!strcmp(name, "Flipwave sm_90"));
    CALL(cuDeviceGetAttribute(&found, 75, 0));
    CHECK(found == 9);
    const char *text;
    CALL(cuGetErrorName(700, &text));
    CHECK(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT(1, cuGetErrorString(12345, &text));
    EXPECT(500, cuModuleGetFunction((CUfunction *)&text, module, "none"));
    EXPECT(400, cuModuleGetFunction((CUfunction *)&text, (CUmodule)&found, "store"));

    CUdeviceptr memory;
    int out[256];
    CALL(cuMemAlloc_v2(&memory, 4096));
    CUfunction dynamic = kernel(module, "dynamic"), store = kernel(module, "store");
    void *parameters[] = {&memory};
    CALL(cuLaunchKernel(dynamic, 1, 1, 1, 128, 1, 1, 512, 0, parameters, 0));
    CALL(cuMemcpyDtoH_v2(out, memory, 512));
    CHECK(out[0] == 127 && out[127] == 0);
    EXPECT(1, cuLaunchKernel(dynamic, 1, 1, 1, 128, 1, 1, 100 << 10, 0, parameters, 0));
    CALL(cuFuncSetAttribute(dynamic, 8, 100 << 10));
    CALL(cuLaunchKernel(dynamic, 1, 1, 1, 128, 1, 1, 100 << 10, 0, parameters, 0));
    EXPECT(1, cuFuncSetAttribute(dynamic, 8, 300 << 10));
    EXPECT(1, cuLaunchKernel(dynamic, 1, 1, 1, 2048, 1, 1, 0, 0, parameters, 0));
    EXPECT(1, cuLaunchKernel(dynamic, 0, 1, 1, 1, 1, 1, 0, 0, parameters, 0));
    EXPECT(400, cuLaunchKernel((CUfunction)&out, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0));

    // Arguments in a buffer.
    struct { CUdeviceptr to; int value; } buffer = {memory, 77};
    size_t size = sizeof buffer;
    CALL(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, 0, 0, (void *[]){(void *)1, &buffer, (void *)2, &size, 0}));
    CALL(cuMemcpyDtoH_v2(out, memory, 4));
    CHECK(out[0] == 77);

    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, store, 256, 0));
    CHECK(found == 8);
    int grid, block;
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, store, 0, 0, 0));
    CHECK(block == 1024 && grid == 2 * 16);

    // Workgroups that wait for each other.
    CUfunction meet = kernel(module, "meet");
    CUdeviceptr arrived;
    CALL(cuMemAlloc_v2(&arrived, 4));
    CALL(cuMemsetD32_v2(arrived, 0, 1));
    CALL(cuLaunchCooperativeKernel(meet, 8, 1, 1, 32, 1, 1, 0, 0, (void *[]){&arrived, &memory}));
    CALL(cuMemcpyDtoH_v2(out, memory, sizeof out));
    for (int i = 0; i < 256; i++)
        CHECK(out[i] == 8);
    EXPECT(720, cuLaunchCooperativeKernel(meet, 100000, 1, 1, 32, 1, 1, 0, 0, (void *[]){&arrived, &memory}));
    CUlaunchAttribute attribute = {.id = 2, .value.cooperative = 1};
    CUlaunchConfig config = {4, 1, 1, 32, 1, 1, 0, 0, &attribute, 1};
    CALL(cuMemsetD32_v2(arrived, 0, 1));
    CALL(cuLaunchKernelEx(&config, meet, (void *[]){&arrived, &memory}, 0));
    CALL(cuMemcpyDtoH_v2(out, memory, 4));
    CHECK(out[0] == 4);

    CUlibrary library;
    CUkernel handle;
    CUfunction function;
    CALL(cuLibraryLoadFromFile(&library, arguments[1], 0, 0, 0, 0, 0, 0));
    CALL(cuLibraryGetKernel(&handle, library, "heap"));
    CALL(cuKernelGetFunction(&function, handle));
    CALL(LAUNCH((CUfunction)handle, 1, 64, &memory));
    CALL(cuMemcpyDtoH_v2(out, memory, 512));
    CHECK(((long *)out)[63] == 63);
    CALL(cuLibraryUnload(library));
    EXPECT(400, LAUNCH(function, 1, 64, &memory));

    CUresult (*get)(int *);
    CALL(cuGetProcAddress_v2("cuDeviceGetCount", (void **)&get, 12080, 0, 0));
    CALL(get(&found));
    CALL(cuGetProcAddress_v2("cuMemAlloc", (void **)&get, 12080, 0, 0));
    CHECK((void *)get == (void *)cuMemAlloc_v2);
    EXPECT(500, cuGetProcAddress_v2("cuNothing", (void **)&get, 12080, 0, &found));
    CHECK(found == 1 && !get);

    // Output appears at synchronization, in order with that of the host.
    int base = 10;
    CALL(LAUNCH(kernel(module, "say"), 1, 3, &base));
    puts("before");
    CALL(cuCtxSynchronize());
    puts("kernels: ok");
    return 0;
}
