// A graph of copies, kernels and a fill, captured from two streams and launched repeatedly.
#include "check.h"

__global__ void add(int *values, const int *addends) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] += addends[i];
}

__global__ void triple(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 3;
}

int main() {
    const int count = 1024, threads = 256, blocks = count / threads;
    const size_t bytes = count * sizeof(int);
    int *in = nullptr, *out = nullptr;
    HIP(hipHostMalloc((void **)&in, bytes, hipHostMallocDefault));
    HIP(hipHostMalloc((void **)&out, bytes, hipHostMallocDefault));
    int *values = to_device(std::vector<int>(count)), *tripled = to_device(std::vector<int>(count));
    int *sums = to_device(std::vector<int>(count));

    hipStream_t stream, beside;
    hipEvent_t fork, join;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&beside, hipStreamNonBlocking));
    HIP(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    HIP(hipEventCreateWithFlags(&join, hipEventDisableTiming));

    hipGraph_t graph;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipEventRecord(fork, stream));
    HIP(hipStreamWaitEvent(beside, fork, 0));
    HIP(hipMemsetAsync(sums, 0, bytes, beside));
    HIP(hipEventRecord(join, beside));
    HIP(hipMemcpyAsync(values, in, bytes, hipMemcpyHostToDevice, stream));
    triple<<<blocks, threads, 0, stream>>>(values, tripled);
    HIP(hipStreamWaitEvent(stream, join, 0));
    add<<<blocks, threads, 0, stream>>>(sums, tripled);
    add<<<blocks, threads, 0, stream>>>(sums, values);
    HIP(hipMemcpyAsync(out, sums, bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 6, "%zu nodes, not 6", nodes);

    hipGraphExec_t executable;
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++)
            in[i] = i + round * 1000;
        HIP(hipGraphLaunch(executable, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < count; i++)
            EXPECT(out[i] == 4 * in[i], "round %d: out[%d] is %d, not %d", round, i, out[i],
                   4 * in[i]);
    }
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    HIP(hipEventDestroy(fork));
    HIP(hipEventDestroy(join));
    HIP(hipStreamDestroy(stream));
    HIP(hipStreamDestroy(beside));
    HIP(hipHostFree(in));
    HIP(hipHostFree(out));
    for (int *buffer : {values, tripled, sums})
        HIP(hipFree(buffer));
    return passed();
}
