// A kernel names memory of the host, which was never mapped for the GPU, as the signal of its own
// packet: who decrements that signal would write there.
#include "../own_packet.h"

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
    // Nobody decrements what the runtime waits for: the program is ended meanwhile.
    for (int milliseconds = 0; milliseconds < 60000; milliseconds++) {
        usleep(1000);
        for (int i = 0; i < 16; i++)
            EXPECT(canary[i] == expected(i), "escaped");
    }
    return passed();
}
