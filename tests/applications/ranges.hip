// Nested named ranges, as profilers show them. Work submitted within a range belongs to it, even if the
// GPU executes it after the end of the range. Ranges do not affect results.
#include "check.h"

#include <dlfcn.h>

__global__ void scale(float *values, float factor) {
    values[threadIdx.x] *= factor;
}

// Functions of the library, from any loaded library. They are missing without a profiler.
static int begin(const char *name) {
    auto function = (int (*)(const char *))dlsym(RTLD_DEFAULT, "roctxRangePushA");
    return function ? function(name) : 0;
}

static void end() {
    if (auto function = (int (*)())dlsym(RTLD_DEFAULT, "roctxRangePop"))
        function();
}

int main() {
    // Begins before a device is opened.
    begin("setup");
    float *values = to_device(std::vector<float>(64, 1.0f));
    scale<<<1, 64>>>(values, 2.0f);
    end();

    hipStream_t streams[2];
    for (auto &stream : streams)
        HIP(hipStreamCreate(&stream));
    scale<<<1, 64>>>(values, 2.0f);
    HIP(hipDeviceSynchronize());
    begin("model");
    for (int layer = 0; layer < 2; layer++) {
        begin(layer == 0 ? "layer 0" : "layer 1");
        scale<<<1, 64, 0, streams[layer]>>>(values, 2.0f);
        scale<<<1, 64, 0, streams[layer]>>>(values, 2.0f);
        end();
        HIP(hipStreamSynchronize(streams[layer]));
    }
    scale<<<1, 64, 0, streams[0]>>>(values, 2.0f);
    end();
    end(); // without a matching begin
    scale<<<1, 64, 0, streams[0]>>>(values, 2.0f);
    HIP(hipDeviceSynchronize());

    for (float value : from_device(values, 64))
        EXPECT(value == 256.0f, "%g in place of 256", value);
    return passed();
}
