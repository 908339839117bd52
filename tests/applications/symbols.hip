// Constant and other device variables: initial values, copies to and from them by name, addresses
// and sizes.
#include "check.h"

__constant__ float coefficients[5] = {1, 2, 3, 4, 5};
__constant__ int offset = 3;
__device__ int counter = 40;
__device__ float results[256];
__device__ int zeroed[100];
__device__ const char *text = "a string of the device";

__global__ void evaluate(const float *x) {
    int i = threadIdx.x;
    float sum = 0;
    for (int power = 4; power >= 0; power--)
        sum = fmaf(sum, x[i], coefficients[power]);
    results[i] = sum + offset + zeroed[i % 100];
    if (i == 0)
        counter += 2;
}

__global__ void read_text(char *out) {
    for (int i = 0; i < 23; i++)
        out[i] = text[i];
}

int main() {
    const int count = 256;
    Random random(12);
    std::vector<float> x(count), expected(count), found(count);
    for (float &value : x)
        value = random.real(-2, 2);
    float *device_x = to_device(x);

    float host_coefficients[5] = {1, 2, 3, 4, 5};
    for (int round = 0; round < 2; round++) {
        evaluate<<<1, count>>>(device_x);
        HIP(hipGetLastError());
        HIP(hipMemcpyFromSymbol(found.data(), HIP_SYMBOL(results), count * sizeof(float)));
        for (int i = 0; i < count; i++) {
            float sum = 0;
            for (int power = 4; power >= 0; power--)
                sum = std::fmaf(sum, x[i], host_coefficients[power]);
            expected[i] = sum + 3 + (round == 1 && i % 100 == 99 ? 7 : 0);
        }
        expect_equal(round == 0 ? "with first values" : "with copied values", found, expected);

        // Two coefficients in the middle, and one element by its address.
        host_coefficients[1] = -1.5f, expected[2] = 0.25f;
        HIP(hipMemcpyToSymbol(HIP_SYMBOL(coefficients), &host_coefficients[1], 2 * sizeof(float),
                              sizeof(float), hipMemcpyHostToDevice));
        void *address = nullptr;
        HIP(hipGetSymbolAddress(&address, HIP_SYMBOL(zeroed)));
        HIP(hipMemsetD32((int *)address + 99, 7, 1));
    }

    int count_of_runs = 0;
    HIP(hipMemcpyFromSymbolAsync(&count_of_runs, HIP_SYMBOL(counter), sizeof(int), 0,
                                 hipMemcpyDeviceToHost, nullptr));
    HIP(hipDeviceSynchronize());
    EXPECT(count_of_runs == 44, "counter is %d, not 44", count_of_runs);
    size_t size = 0;
    HIP(hipGetSymbolSize(&size, HIP_SYMBOL(results)));
    EXPECT(size == sizeof(float) * 256, "results have %zu bytes", size);

    char *device_text = to_device(std::vector<char>(23));
    read_text<<<1, 1>>>(device_text);
    HIP(hipGetLastError());
    std::vector<char> read = from_device(device_text, 23);
    EXPECT(std::string(read.data()) == "a string of the device", "the text is %s", read.data());
    HIP(hipFree(device_x));
    HIP(hipFree(device_text));
    return passed();
}
