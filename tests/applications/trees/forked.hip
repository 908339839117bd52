// Processes that are forked before any of them opens a GPU; each then does its part. With `late`, the
// parent does its part first, and its children use no GPU; the last child executes the program of the
// second argument.
#include "../check.h"

#include <sys/wait.h>
#include <unistd.h>

const int count = 64;

__global__ void part(float *values, int more) { values[threadIdx.x] += more; }

static void work(int number) {
    float *values = to_device(std::vector<float>(count, number));
    for (int i = 0; i <= number; i++)
        part<<<1, count>>>(values, i);
    printf("%d: %g\n", number, from_device(values, count)[7]);
    fflush(stdout);
    HIP(hipFree(values));
}

int main(int arguments, char **argument) {
    std::string kind = arguments > 1 ? argument[1] : "";
    if (kind == "late") {
        work(0);
        for (int number = 1; number < 3; number++) {
            pid_t child = fork();
            if (child == 0) {
                if (number == 1)
                    // Runs the exit handlers that the parent registered.
                    exit(0);
                execl(argument[2], argument[2], "9", nullptr);
                _exit(2);
            }
            int status;
            // The runtime may fail to shut down in a child that does not inherit the GPU of its parent.
            EXPECT(waitpid(child, &status, 0) == child, "no end");
            EXPECT(number == 1 || status == 0, "a child: %d", status);
        }
        work(1);
        // Includes the process itself.
        execl(argument[2], argument[2], "5", nullptr);
        return 2;
    }
    std::vector<pid_t> children;
    for (int number = 0; number < 5; number++) {
        pid_t child = fork();
        if (child == 0) {
            // In reverse order.
            usleep((5 - number) * 30000);
            work(number);
            exit(0);
        }
        children.push_back(child);
    }
    for (pid_t child : children) {
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "a child: %d", status);
    }
    return 0;
}
