// Exchange between lanes of a wave: shuffles, votes, masks; and counting bits. For waves of 64 and
// of 32 lanes.
#include "check.h"

const int outputs = 12;

__global__ void exchange(const int *values, unsigned long long *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
    int value = values[i];
    int sum = value;
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        sum += __shfl_xor(sum, distance);
    unsigned long long results[outputs] = {
        (unsigned long long)sum,
        (unsigned long long)__shfl(value, (lane * 7 + 3) % warpSize),
        (unsigned long long)__shfl_up(value, 3),
        (unsigned long long)__shfl_down(value, 5),
        // Segments of 16 lanes.
        (unsigned long long)__shfl(value, 2, 16),
        (unsigned long long)(long long)__shfl_down(value * 1.5, 1, 16),
        __ballot(value > 0),
        (unsigned long long)__popcll(__ballot(value % 3 == 0)),
        (unsigned long long)(__any(value == 17) * 2 + __all(value < 1000)),
        (unsigned long long)(__popc(value) * 10000 + __clz(value) * 100 + __ffs(value)),
        (unsigned long long)__brev((unsigned)value),
        0,
    };
    // Inactive lanes do not vote.
    if (value % 2 == 0) {
        unsigned long long fours = __ballot(value % 4 == 0);
        results[11] = fours + (lane == __ffsll(fours) - 1);
    }
    for (int output = 0; output < outputs; output++)
        out[i * outputs + output] = results[output];
}

int main() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    const int count = 512, warp = properties.warpSize;
    Random random(13);
    std::vector<int> values(count);
    for (int &value : values)
        value = (int)(random.word() % 1100) - 100;
    int *device_values = to_device(values);
    unsigned long long *device_out = nullptr;
    HIP(hipMalloc((void **)&device_out, count * outputs * sizeof(unsigned long long)));
    exchange<<<2, count / 2>>>(device_values, device_out);
    HIP(hipGetLastError());

    std::vector<unsigned long long> expected;
    for (int i = 0; i < count; i++) {
        const int *all = &values[i / warp * warp];
        int lane = i % warp, value = values[i], sum = 0, threes = 0;
        unsigned long long positive = 0, fours = 0;
        bool any = false, every = true;
        for (int other = 0; other < warp; other++) {
            sum += all[other];
            threes += all[other] % 3 == 0;
            positive |= (unsigned long long)(all[other] > 0) << other;
            fours |= (unsigned long long)(all[other] % 4 == 0) << other;
            any |= all[other] == 17;
            every &= all[other] < 1000;
        }
        unsigned reversed = 0;
        for (int bit = 0; bit < 32; bit++)
            reversed |= ((unsigned)value >> bit & 1) << (31 - bit);
        int next = lane % 16 < 15 ? all[lane + 1] : value;
        int zeros = value ? __builtin_clz((unsigned)value) : 32;
        for (unsigned long long result : {
                 (unsigned long long)sum,
                 (unsigned long long)all[(lane * 7 + 3) % warp],
                 (unsigned long long)(lane >= 3 ? all[lane - 3] : value),
                 (unsigned long long)(lane + 5 < warp ? all[lane + 5] : value),
                 (unsigned long long)all[lane / 16 * 16 + 2],
                 (unsigned long long)(long long)(next * 1.5),
                 positive,
                 (unsigned long long)threes,
                 (unsigned long long)(any * 2 + every),
                 (unsigned long long)(__builtin_popcount((unsigned)value) * 10000 + zeros * 100 +
                                      __builtin_ffs(value)),
                 (unsigned long long)reversed,
                 value % 2 == 0 ? fours + (lane == __builtin_ffsll((long long)fours) - 1) : 0ull,
             })
            expected.push_back(result);
    }
    expect_equal("exchanged", from_device(device_out, count * outputs), expected);
    HIP(hipFree(device_values));
    HIP(hipFree(device_out));
    return passed();
}
