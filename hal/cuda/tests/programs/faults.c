// Faults of kernels: the context returns their error from then on.
#include "driver.h"

int main(int count, char **arguments)
{
    CUmodule module = start(arguments[1]);
    const char *name = arguments[2];
    CUdeviceptr memory, pointer = 0x1234;
    CALL(cuMemAlloc_v2(&memory, 512));
    int value = 3, expected = atoi(arguments[3]);
    if (!strcmp(name, "table")) {
        // Undocumented; the error does not stay.
        const void *table = name;
        EXPECT(expected, cuGetExportTable(&table, name));
        CHECK(!table);
        CALL(cuCtxSynchronize());
        return 0;
    }
    if (!strcmp(name, "store"))
        CALL(LAUNCH(kernel(module, name), 1, 1, &pointer, &value));
    else if (!strcmp(name, "host")) {
        int here;
        int *to = &here;
        CALL(LAUNCH(kernel(module, "store"), 1, 1, &to, &value));
    } else if (!strcmp(name, "check"))
        CALL(LAUNCH(kernel(module, name), 1, 8, &value));
    else
        CALL(LAUNCH(kernel(module, name), 1, 1, &memory));
    EXPECT(expected, cuCtxSynchronize());
    EXPECT(expected, cuMemAlloc_v2(&pointer, 4));
    EXPECT(expected, cuStreamSynchronize(0));
    CUcontext context;
    EXPECT(expected, cuCtxCreate_v2(&context, 0, 0));
    return 0;
}
