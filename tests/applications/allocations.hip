// Many allocations of different sizes, freed and allocated again in another order. No two overlap,
// and kernels write every byte of each.
#include "check.h"

#include <algorithm>
#include <utility>

__global__ void fill(uint32_t *words, size_t count, uint32_t salt) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] = (uint32_t)i * 40503u + salt;
}

// Writes the first and the last word, and some in between.
__global__ void verify(const uint32_t *words, size_t count, uint32_t salt, int *wrong) {
    size_t i = threadIdx.x * count / blockDim.x;
    if (threadIdx.x == blockDim.x - 1)
        i = count - 1;
    if (words[i] != (uint32_t)i * 40503u + salt)
        *wrong = 1;
}

struct Allocation {
    uint32_t *words;
    size_t count;
    uint32_t salt;
};

int main() {
    Random random(18);
    std::vector<Allocation> live;
    int *wrong = to_device(std::vector<int>(1));
    for (uint32_t round = 0; round < 120; round++) {
        if (live.size() > 20) {
            size_t victim = random.word() % live.size();
            const Allocation &old = live[victim];
            verify<<<1, 64>>>(old.words, old.count, old.salt, wrong);
            HIP(hipGetLastError());
            HIP(hipFree(old.words));
            live.erase(live.begin() + victim);
        }
        // Mostly small, some of a megabyte.
        uint32_t magnitude = 1u << random.word() % 14;
        Allocation allocation = {nullptr, 1 + random.word() % magnitude, round};
        if (round % 30 == 29)
            allocation.count = 1 << 18;
        HIP(hipMalloc((void **)&allocation.words, allocation.count * sizeof(uint32_t)));
        EXPECT((uintptr_t)allocation.words % 256 == 0, "an allocation at %p",
               (void *)allocation.words);
        fill<<<4, 256>>>(allocation.words, allocation.count, allocation.salt);
        HIP(hipGetLastError());
        live.push_back(allocation);
    }
    std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
    for (const Allocation &allocation : live) {
        verify<<<1, 64>>>(allocation.words, allocation.count, allocation.salt, wrong);
        HIP(hipGetLastError());
        ranges.emplace_back((uintptr_t)allocation.words,
                            (uintptr_t)(allocation.words + allocation.count));
    }
    EXPECT(from_device(wrong, 1)[0] == 0, "a word of an allocation was changed");
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); i++)
        EXPECT(ranges[i - 1].second <= ranges[i].first, "two allocations overlap");
    for (const Allocation &allocation : live)
        HIP(hipFree(allocation.words));
    HIP(hipFree(wrong));
    return passed();
}
