// A kernel sets the completion signal of its dispatch packet to host memory that was never mapped
// for the GPU. Decrementing the signal would write to that memory.
#include "../dispatch_packet.h"

#include <unistd.h>

static long canary[16] __attribute__((aligned(64)));

static long expected(int index) {
    return index == 2 ? 0 : 1000 + index;
}

int main() {
    for (int i = 0; i < 16; i++)
        canary[i] = expected(i);
    rewrite<<<1, 1>>>(canary);
    HIP(hipGetLastError());
    // The signal that the runtime waits for is never decremented: the program is ended before.
    for (int milliseconds = 0; milliseconds < 60000; milliseconds++) {
        usleep(1000);
        for (int i = 0; i < 16; i++)
            EXPECT(canary[i] == expected(i), "escaped");
    }
    return passed();
}
