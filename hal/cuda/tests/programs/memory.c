// Copies in all directions, fills, managed and registered memory, and properties of pointers.
#include "driver.h"

enum { N = 1000 };

int main(int count, char **arguments)
{
    CUmodule module = start(arguments[1]);
    CUfunction saxpy = kernel(module, "saxpy"), store = kernel(module, "store");
    size_t before, after, total, bytes;
    CALL(cuMemGetInfo_v2(&before, &total));
    float x[N], y[N], expected[N], a = 2.5f;
    for (int i = 0; i < N; i++) {
        x[i] = i * 0.25f;
        y[i] = 1.0f - i;
        expected[i] = a * x[i] + y[i];
    }
    CUdeviceptr dx, dy, dz;
    CALL(cuMemAlloc_v2(&dx, sizeof x));
    CALL(cuMemAlloc_v2(&dy, sizeof y));
    CALL(cuMemAlloc_v2(&dz, sizeof y));
    CALL(cuMemGetInfo_v2(&after, &total));
    CHECK(before - after >= 3 * sizeof x);
    CALL(cuMemcpyHtoD_v2(dx, x, sizeof x));
    CALL(cuMemcpyHtoD_v2(dy, y, sizeof y));
    int n = N;
    CALL(LAUNCH(saxpy, (N + 127) / 128, 128, &a, &dx, &dy, &n));
    CALL(cuMemcpyDtoD_v2(dz, dy, sizeof y));
    memset(y, 0, sizeof y);
    CALL(cuMemcpyDtoH_v2(y, dz, sizeof y));
    CHECK(!memcmp(y, expected, sizeof y));
    EXPECT(1, cuMemcpyDtoH_v2(y, dz, sizeof y + 512));
    EXPECT(1, cuMemFree_v2(dz + 4));
    CALL(cuMemFree_v2(dz));
    EXPECT(1, cuMemcpyDtoH_v2(y, dz, 4));

    CALL(cuMemsetD32_v2(dx, 0x01020304, 8));
    CALL(cuMemsetD8_v2(dx + 4, 0xff, 2));
    uint32_t words[8];
    CALL(cuMemcpyDtoH_v2(words, dx, sizeof words));
    CHECK(words[0] == 0x01020304 && words[1] == 0x0102ffff);

    size_t pitch;
    CUdeviceptr rows;
    CALL(cuMemAllocPitch_v2(&rows, &pitch, 12, 4, 4));
    CALL(cuMemsetD2D32_v2(rows, pitch, 7, 3, 4));
    uint32_t square[4][3] = {{0}};
    CUDA_MEMCPY2D copy = {.srcMemoryType = 2, .srcDevice = rows, .srcPitch = pitch, .dstMemoryType = 1,
                          .dstHost = square, .dstPitch = 12, .WidthInBytes = 8, .Height = 4};
    CALL(cuMemcpy2D_v2(&copy));
    CHECK(square[3][1] == 7 && square[3][2] == 0);

    // The host sees what kernels write at the same address, and the other way round.
    CUdeviceptr managed;
    CALL(cuMemAllocManaged(&managed, 64, 1));
    int *host = (int *)managed, value = 41;
    host[1] = 5;
    CALL(LAUNCH(store, 1, 1, &managed, &value));
    CALL(cuCtxSynchronize());
    CHECK(host[0] == 41 && host[1] == 5);
    int kind, is_managed = 0;
    CALL(cuPointerGetAttribute(&kind, 2, managed));
    CHECK(kind == 2);
    CALL(cuPointerGetAttribute(&is_managed, 8, managed));
    CHECK(is_managed == 1);
    CALL(cuPointerGetAttribute(&kind, 2, dx));
    CHECK(kind == 2);
    EXPECT(1, cuPointerGetAttribute(&kind, 2, (CUdeviceptr)x));
    CALL(cuMemFree_v2(managed));

    int *pinned;
    CUdeviceptr device;
    CALL(cuMemHostAlloc((void **)&pinned, 4096, 2));
    CALL(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
    value = 42;
    CALL(LAUNCH(store, 1, 1, &device, &value));
    CALL(cuCtxSynchronize());
    CHECK(*pinned == 42);
    CALL(cuMemFreeHost(pinned));

    int *own = malloc(64);
    CALL(cuMemHostRegister_v2(own, 64, 0));
    EXPECT(712, cuMemHostRegister_v2(own + 2, 8, 0));
    value = 43;
    CALL(LAUNCH(store, 1, 1, &own, &value));
    CALL(cuCtxSynchronize());
    CHECK(*own == 43);
    CALL(cuMemHostUnregister(own));
    EXPECT(713, cuMemHostUnregister(own));

    CUdeviceptr symbol;
    CALL(cuModuleGetGlobal_v2(&symbol, &bytes, module, "counter"));
    CHECK(bytes == 4);
    EXPECT(500, cuModuleGetGlobal_v2(&symbol, &bytes, module, "none"));
    int out[8];
    CALL(LAUNCH(kernel(module, "count"), 1, 8, &dx));
    CALL(cuMemcpyDtoH_v2(out, dx, sizeof out));
    CHECK(out[3] == 4 && out[4] == 1);
    CALL(cuMemcpyDtoH_v2(out, symbol, 4));
    CHECK(out[0] == 5 + 2 * (1 + 2 + 3 + 4));
    puts("memory: ok");
    return 0;
}
