// Memory that host and device use at the same address, without copies: allocations and a managed
// variable.
#include "check.h"

struct Node {
    int value;
    Node *next;
};

__managed__ int total = 5;
__managed__ float weights[4];

__global__ void double_all(int *values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] *= 2;
}

// Follows pointers that the host wrote.
__global__ void add_list(const Node *node) {
    for (; node; node = node->next)
        total += node->value;
    for (int i = 0; i < 4; i++)
        weights[i] *= weights[i];
}

int main() {
    const int count = 1500;
    int *values = nullptr;
    HIP(hipMallocManaged((void **)&values, count * sizeof(int)));
    for (int i = 0; i < count; i++)
        values[i] = i * i;
    // Host and device take turns.
    for (int round = 0; round < 3; round++) {
        double_all<<<count / 100, 100>>>(values);
        HIP(hipGetLastError());
        HIP(hipDeviceSynchronize());
        for (int i = 0; i < count; i++)
            values[i] += 1;
    }
    for (int i = 0; i < count; i++)
        EXPECT(values[i] == 8 * i * i + 7, "values[%d] is %d", i, values[i]);

    Node *nodes = nullptr;
    HIP(hipMallocManaged((void **)&nodes, 10 * sizeof(Node), hipMemAttachGlobal));
    for (int i = 0; i < 10; i++)
        nodes[i] = Node{1 << i, i < 9 ? &nodes[i + 1] : nullptr};
    for (int i = 0; i < 4; i++)
        weights[i] = i + 0.5f;
    add_list<<<1, 1>>>(nodes);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    EXPECT(total == 5 + 1023, "total is %d", total);
    for (int i = 0; i < 4; i++)
        EXPECT(weights[i] == (i + 0.5f) * (i + 0.5f), "weights[%d] is %g", i, weights[i]);
    HIP(hipFree(values));
    HIP(hipFree(nodes));
    return passed();
}
