// Measures the cost of waiting on the host: wall time, and processor time of its threads and the GPU's.
//
//     host launches|synced|copies|long|threads COUNT
#include "../check.h"

#include <chrono>
#include <cstring>
#include <dirent.h>
#include <thread>
#include <unistd.h>

__global__ void nothing() {}

__global__ void busy(unsigned *out, unsigned rounds) {
    unsigned value = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++)
        value = value * 1664525u + 1013904223u;
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

// Processor time so far in seconds, of the GPU's threads and of all others.
struct Used {
    double gpu = 0, host = 0;
};

static Used used() {
    Used sum;
    DIR *all = opendir("/proc/self/task");
    while (dirent *entry = readdir(all)) {
        if (entry->d_name[0] == '.')
            continue;
        char path[300], text[512] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        size_t length = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        const char *after = length > 0 ? strrchr(text, ')') : nullptr;
        unsigned long user = 0, system = 0;
        if (after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
            (strstr(text, "(flipwave") ? sum.gpu : sum.host) +=
                double(user + system) / sysconf(_SC_CLK_TCK);
    }
    closedir(all);
    return sum;
}

int main(int count_of_arguments, char **arguments) {
    EXPECT(count_of_arguments == 3, "usage: host launches|synced|copies|long|threads COUNT");
    std::string what = arguments[1];
    unsigned count = atoi(arguments[2]);
    unsigned *out;
    HIP(hipMalloc((void **)&out, 1 << 20));
    std::vector<unsigned> host(1 << 18);
    nothing<<<1, 64>>>();
    HIP(hipDeviceSynchronize());
    Used before = used();
    auto start = std::chrono::steady_clock::now();
    if (what == "launches") {
        for (unsigned i = 0; i < count; i++)
            nothing<<<1, 64>>>();
    } else if (what == "synced") {
        for (unsigned i = 0; i < count; i++) {
            nothing<<<1, 64>>>();
            HIP(hipDeviceSynchronize());
        }
    } else if (what == "copies") {
        for (unsigned i = 0; i < count; i++) {
            HIP(hipMemcpy(out, host.data(), 1 << 20, hipMemcpyHostToDevice));
            HIP(hipMemcpy(host.data(), out, 1 << 20, hipMemcpyDeviceToHost));
        }
    } else if (what == "long") {
        busy<<<64, 256>>>(out, count);
    } else if (what == "threads") {
        auto work = [&] {
            hipStream_t stream;
            HIP(hipStreamCreate(&stream));
            for (int i = 0; i < 4; i++) {
                busy<<<64, 256, 0, stream>>>(out, count);
                HIP(hipStreamSynchronize(stream));
            }
            HIP(hipStreamDestroy(stream));
        };
        std::thread other(work);
        work();
        other.join();
    } else {
        fail("unknown: %s", arguments[1]);
    }
    HIP(hipDeviceSynchronize());
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    Used after = used();
    printf("%s %u: wall %.2f s, host %.2f s, gpu %.2f s\n", what.c_str(), count, wall.count(),
           after.host - before.host, after.gpu - before.gpu);
}
