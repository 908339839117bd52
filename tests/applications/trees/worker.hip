// A small computation in a separate process. The start value is an argument or the MPI rank. The program
// prints the sum. `open` opens a GPU without a dispatch; `crash` ends with a signal after the kernel.
#include "../check.h"

#include <csignal>
#include <unistd.h>

const int count = 64;

__global__ void work(const float *in, float *out, int rounds) {
    float value = in[threadIdx.x];
    for (int round = 0; round < rounds; round++)
        value = __builtin_fmaf(value, 0.5f, 1.0f);
    out[threadIdx.x] = value;
}

int main(int arguments, char **argument) {
    std::string start = arguments > 1 ? argument[1] : "0";
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (start == "rank")
        start = rank ? rank : "none";
    std::vector<float> values(count);
    for (int i = 0; i < count; i++)
        values[i] = i + atoi(start.c_str());
    float *in = to_device(values), *out = to_device(values);
    if (start == "open")
        return 0;
    // A different count than in other processes, so that the tables differ.
    work<<<1, count>>>(in, out, 3 + atoi(start.c_str()));
    HIP(hipDeviceSynchronize());
    if (start == "crash") {
        fflush(stdout);
        raise(SIGSEGV);
    }
    float sum = 0;
    for (float value : from_device(out, count))
        sum += value;
    // A single write, because processes share the file.
    char line[64];
    int length = snprintf(line, sizeof(line), "%s: %.9g\n", start.c_str(), sum);
    if (write(STDOUT_FILENO, line, length) != length)
        return 1;
    return 0;
}
