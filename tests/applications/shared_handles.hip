// Memory that a process manages itself is exported as a file and also mapped in another process.
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#if HIP_VERSION_MAJOR < 6
// HIP 5 declares these functions without implementing them.
int main() { return passed(); }
#else

__global__ void add(int *values, int count, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] += more;
}

static hipMemAllocationProp property() {
    hipMemAllocationProp properties = {};
    properties.type = hipMemAllocationTypePinned;
    properties.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    properties.location.type = hipMemLocationTypeDevice;
    properties.location.id = 0;
    return properties;
}

static size_t bytes() {
    hipMemAllocationProp properties = property();
    size_t bytes = 0;
    HIP(hipMemGetAllocationGranularity(&bytes, &properties, hipMemAllocationGranularityMinimum));
    return bytes;
}

static int *map(hipMemGenericAllocationHandle_t handle) {
    void *place = nullptr;
    HIP(hipMemAddressReserve(&place, bytes(), 0, nullptr, 0));
    HIP(hipMemMap(place, bytes(), 0, handle, 0));
    hipMemAccessDesc access = {};
    access.location = property().location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    HIP(hipMemSetAccess(place, bytes(), &access, 1));
    return (int *)place;
}

static void add_to_all(int *values, int more) {
    int count = bytes() / sizeof(int);
    add<<<(count + 255) / 256, 256>>>(values, count, more);
    HIP(hipDeviceSynchronize());
}

// File descriptor in the second process.
const int FILE_NUMBER = 100;

static int second() {
    HIP(hipFree(nullptr));
    hipMemGenericAllocationHandle_t handle;
#if HIP_VERSION_MAJOR < 7
    // HIP 6 reads the file descriptor from the address.
    int number = FILE_NUMBER;
    void *file = &number;
#else
    void *file = (void *)(uintptr_t)FILE_NUMBER;
#endif
    HIP(hipMemImportFromShareableHandle(&handle, file, hipMemHandleTypePosixFileDescriptor));
    int *values = map(handle);
    EXPECT(from_device(values, 1)[0] == 5, "not of the first process");
    add_to_all(values, 1000);
    return passed();
}

int main(int count, char **arguments) {
    if (count == 2)
        return second();
    hipMemAllocationProp properties = property();
    hipMemGenericAllocationHandle_t handle;
    HIP(hipMemCreate(&handle, bytes(), &properties, 0));
    int *values = map(handle);
    HIP(hipMemset(values, 0, bytes()));
    add_to_all(values, 5);
    int file = -1;
    HIP(hipMemExportToShareableHandle(&file, handle, hipMemHandleTypePosixFileDescriptor, 0));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, file, FILE_NUMBER);
    char second[] = "second", *others[] = {arguments[0], second, nullptr};
    fflush(stdout);
    pid_t child;
    int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, others, environ);
    EXPECT(error == 0, "no process");
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the second process: %d", status);
    size_t all = bytes() / sizeof(int);
    expect_equal("of the second process", from_device(values, all), std::vector<int>(all, 1005));
    return passed();
}
#endif
