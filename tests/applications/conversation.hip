// The host and a running kernel communicate through coherent memory: the kernel waits for each
// question and the host for each answer.
#include "check.h"

struct Mailbox {
    unsigned int question, answer;
    unsigned int asked, answered;
};

__global__ void answer(Mailbox *mailbox, unsigned int rounds) {
    for (unsigned int round = 1; round <= rounds; round++) {
        while (__hip_atomic_load(&mailbox->asked, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) !=
               round)
            __builtin_amdgcn_s_sleep(1);
        mailbox->answer = mailbox->question * mailbox->question + round;
        __hip_atomic_store(&mailbox->answered, round, __ATOMIC_RELEASE,
                           __HIP_MEMORY_SCOPE_SYSTEM);
    }
}

int main() {
    const unsigned int rounds = 4;
    Mailbox *mailbox = nullptr;
    HIP(hipHostMalloc((void **)&mailbox, sizeof(Mailbox), hipHostMallocCoherent));
    *mailbox = Mailbox{};
    answer<<<1, 1>>>(mailbox, rounds);
    HIP(hipGetLastError());
    for (unsigned int round = 1; round <= rounds; round++) {
        mailbox->question = round * 1001;
        __atomic_store_n(&mailbox->asked, round, __ATOMIC_RELEASE);
        while (__atomic_load_n(&mailbox->answered, __ATOMIC_ACQUIRE) != round) {
        }
        unsigned int expected = round * 1001 * round * 1001 + round;
        EXPECT(mailbox->answer == expected, "answer %u is %u, not %u", round, mailbox->answer,
               expected);
    }
    HIP(hipDeviceSynchronize());
    HIP(hipHostFree(mailbox));
    return passed();
}
