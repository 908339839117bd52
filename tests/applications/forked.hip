// A forked process does not inherit the GPU of its parent: it runs until it needs a GPU, cannot affect the
// GPU of the parent, and a program that it executes (`exec`) has its own.
#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

const int COUNT = 100000;

__global__ void add(int *values, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        values[i] += more + i;
}

static void add_to(int *values, int more) { add<<<(COUNT + 255) / 256, 256>>>(values, more); }

// Returns the exit status of a child process that runs `action`.
template <typename F> static int child(F action) {
    fflush(stdout);
    pid_t process = fork();
    EXPECT(process >= 0, "no child");
    if (process == 0) {
        action();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(process, &status, 0) == process, "no end");
    return status;
}

int main(int count, char **arguments) {
    int *values;
    HIP(hipMalloc((void **)&values, COUNT * sizeof(int)));
    HIP(hipMemset(values, 0, COUNT * sizeof(int)));
    if (count == 2) {
        add_to(values, 3);
        return from_device(values, 1)[0] == 3 ? 0 : 1;
    }
    // Forks while a kernel is running.
    add_to(values, 1);
    int status = child([] {
        std::vector<int> values(COUNT, 1);
        long sum = 0;
        for (int value : values)
            sum += value;
        if (sum != COUNT)
            _exit(1);
    });
    EXPECT(status == 0, "a child without a GPU: %d", status);
    add_to(values, 1);
    // Calls that need the GPU may fail, but only the child is affected.
    status = child([] {
        alarm(5);
        // The runtime prints its failure to standard error.
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        int *memory;
        if (hipMalloc((void **)&memory, 1 << 26) == hipSuccess)
            _exit(7);
    });
    EXPECT(!WIFEXITED(status) || WEXITSTATUS(status) != 7, "a child has got memory of the GPU");
    status = child([&] {
        char second[] = "second", *others[] = {arguments[0], second, nullptr};
        execv("/proc/self/exe", others);
        _exit(2);
    });
    EXPECT(status == 0, "a program with a GPU of its own: %d", status);
    std::vector<int> expected(COUNT);
    for (int i = 0; i < COUNT; i++)
        expected[i] = 2 + 2 * i;
    expect_equal("the parent's", from_device(values, COUNT), expected);
    return passed();
}
