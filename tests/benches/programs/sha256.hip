// Double SHA-256 of many short messages (FIPS 180-4), with a thread for each: shifts, additions, and
// an array that the compiler keeps in private memory or in registers.
#include "program.h"

const int threads = 256;

struct Hash {
    uint32_t words[8];
};

constexpr uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__host__ __device__ inline uint32_t turned(uint32_t word, int by) {
    return word >> by | word << (32 - by);
}

// Hash of a message that fits in one block with its padding.
__host__ __device__ inline Hash hashed(const uint32_t *block) {
    const Hash first = {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                         0x1f83d9ab, 0x5be0cd19}};
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = block[i];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] +
               (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    Hash hash = first;
    uint32_t *s = hash.words;
    for (int i = 0; i < 64; i++) {
        uint32_t mixed = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25);
        uint32_t one = s[7] + mixed + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
        uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + one;
        s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        s[i] += first.words[i];
    return hash;
}

// The message is `abc` followed by a number.
__host__ __device__ inline Hash twice(uint32_t number) {
    uint32_t block[16] = {0x61626380, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24};
    if (number != 0)
        block[0] = 0x61626300 | number >> 24, block[1] = number << 8 | 0x80, block[15] = 56;
    Hash once = hashed(block);
    uint32_t again[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0x80000000, 0, 0, 0, 0, 0, 0, 256};
    for (int i = 0; i < 8; i++)
        again[i] = once.words[i];
    return hashed(again);
}

__global__ void hash_all(Hash *hashes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        hashes[i] = twice(i);
}

static void hash_all_host(Hash *hashes, int count) {
    for (int i = 0; i < count; i++)
        hashes[i] = twice(i);
}

int main(int count_of_arguments, char **arguments) {
    const int count = size(count_of_arguments, arguments, 1 << 17, 1000);
    Device<Hash> device_hashes(count);
    double gpu = seconds(
        [&] { hash_all<<<groups(count, threads), threads>>>(device_hashes, count); });
    std::vector<Hash> hashes(count), found;
    double host = seconds([&] { hash_all_host(hashes.data(), count); });
    found = device_hashes.values();
    for (int i = 0; i < count; i++)
        for (int word = 0; word < 8; word++)
            EXPECT(found[i].words[word] == hashes[i].words[word], "hash %d is wrong", i);
    // Hash of `abc` without a number.
    EXPECT(hashes[0].words[0] == 0x4f8b42c2, "the hash begins with %08x", hashes[0].words[0]);
    return report("sha256", gpu, host, hashes);
}
