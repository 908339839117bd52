// Breadth-first search in a graph with edges in compressed rows: a thread for each node of the
// frontier, a launch for each level. Atomic operations with results append the nodes of the next
// level to a queue.
#include "program.h"

const int threads = 256;

__global__ void visit(const int *starts, const int *edges, const int *queue, int length, int depth,
                      int *levels, int *next, int *next_length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length)
        return;
    int node = queue[i];
    for (int edge = starts[node]; edge < starts[node + 1]; edge++)
        if (atomicCAS(&levels[edges[edge]], -1, depth) == -1)
            next[atomicAdd(next_length, 1)] = edges[edge];
}

static void search(const int *starts, const int *edges, int *levels, int *queue, int *next,
                   int *next_length) {
    for (int length = 1, depth = 1; length > 0; depth++) {
        HIP(hipMemset(next_length, 0, sizeof(int)));
        visit<<<groups(length, threads), threads>>>(starts, edges, queue, length, depth, levels,
                                                    next, next_length);
        length = from_device(next_length, 1)[0];
        std::swap(queue, next);
    }
}

static void search_host(const std::vector<int> &starts, const std::vector<int> &edges,
                        std::vector<int> &levels, std::vector<int> &queue) {
    for (int first = 0, last = 1; first < last; first++) {
        int node = queue[first];
        for (int edge = starts[node]; edge < starts[node + 1]; edge++)
            if (levels[edges[edge]] == -1) {
                levels[edges[edge]] = levels[node] + 1;
                queue[last++] = edges[edge];
            }
    }
}

int main(int count, char **arguments) {
    const int nodes = size(count, arguments, 1 << 19, 3000);
    Random random(3);
    std::vector<int> starts(nodes + 1), edges, levels(nodes, -1), queue(nodes);
    for (int node = 0; node < nodes; node++) {
        for (int degree = 1 + random.word() % 16; degree > 0; degree--)
            edges.push_back(random.word() % nodes);
        starts[node + 1] = (int)edges.size();
    }
    levels[0] = 0;
    Device<int> device_starts(starts), device_edges(edges), device_levels(levels);
    Device<int> device_queue(queue), next(queue), next_length(1);
    double gpu = seconds([&] {
        search(device_starts, device_edges, device_levels, device_queue, next, next_length);
    });
    double host = seconds([&] { search_host(starts, edges, levels, queue); });
    expect_equal("levels", device_levels.values(), levels);
    return report("breadth_first", gpu, host, levels);
}
