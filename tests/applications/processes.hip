// Two processes with a GPU each share memory: one writes, the other adds and writes back. The second
// process executes this program again, because a process with a GPU cannot be forked.
#include "check.h"

#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const int COUNT = 100000;

__global__ void add(int *values, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        values[i] += more + i;
}

static std::vector<int> counted(int from) {
    std::vector<int> values(COUNT);
    for (int i = 0; i < COUNT; i++)
        values[i] = from + i;
    return values;
}

static int second(const char *text) {
    hipIpcMemHandle_t handle;
    unsigned char *bytes = (unsigned char *)&handle;
    EXPECT(strlen(text) == 2 * sizeof(handle), "a handle of %zu bytes", strlen(text) / 2);
    for (size_t i = 0; i < sizeof(handle); i++)
        sscanf(text + 2 * i, "%2hhx", &bytes[i]);
    int *values;
    HIP(hipIpcOpenMemHandle((void **)&values, handle, hipIpcMemLazyEnablePeerAccess));
    expect_equal("of the first process", from_device(values, COUNT), counted(7));
    add<<<(COUNT + 255) / 256, 256>>>(values, 1000);
    HIP(hipDeviceSynchronize());
    HIP(hipIpcCloseMemHandle(values));
    // Closed memory no longer belongs to this process, and its address is reused.
    int *other;
    HIP(hipMalloc((void **)&other, COUNT * sizeof(int)));
    HIP(hipMemset(other, 0xff, COUNT * sizeof(int)));
    HIP(hipFree(other));
    return passed();
}

int main(int count, char **arguments) {
    if (count == 2)
        return second(arguments[1]);
    int *before, *values;
    HIP(hipMalloc((void **)&before, 1 << 12));
    HIP(hipMalloc((void **)&values, COUNT * sizeof(int)));
    HIP(hipMemcpy(values, counted(7).data(), COUNT * sizeof(int), hipMemcpyHostToDevice));
    hipIpcMemHandle_t handle;
    HIP(hipIpcGetMemHandle(&handle, values));
    char text[2 * sizeof(handle) + 1] = "";
    for (size_t i = 0; i < sizeof(handle); i++)
        snprintf(text + 2 * i, 3, "%02hhx", ((unsigned char *)&handle)[i]);
    char *child_arguments[] = {arguments[0], text, nullptr};
    fflush(stdout);
    pid_t child;
    EXPECT(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, child_arguments, environ) == 0,
           "no process");
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the second process: %d", status);
    std::vector<int> expected(COUNT);
    for (int i = 0; i < COUNT; i++)
        expected[i] = 1007 + 2 * i;
    expect_equal("of the second process", from_device(values, COUNT), expected);
    HIP(hipFree(values));
    return passed();
}
