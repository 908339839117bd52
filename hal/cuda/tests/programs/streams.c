// Streams, events, host functions, graphs, threads, and kernels that wait for the host.
#include "driver.h"
#include <pthread.h>
#include <unistd.h>

static int calls;

static void called(void *argument)
{
    // Functions in streams must not call the driver.
    EXPECT(800, cuCtxSynchronize());
    calls += *(int *)argument;
}

static CUmodule module;
static CUcontext context;

static void *in_thread(void *argument)
{
    long number = (long)argument;
    CALL(cuCtxSetCurrent(context));
    CUstream stream;
    CALL(cuStreamCreate(&stream, 1));
    CUdeviceptr memory;
    CALL(cuMemAlloc_v2(&memory, 4));
    CUfunction store = kernel(module, "store");
    for (int round = 0; round < 20; round++) {
        int value = number * 1000 + round, found;
        CALL(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&memory, &value}, 0));
        CALL(cuMemcpyDtoHAsync_v2(&found, memory, 4, stream));
        CALL(cuStreamSynchronize(stream));
        CHECK(found == value);
    }
    CALL(cuStreamDestroy_v2(stream));
    return 0;
}

int main(int count, char **arguments)
{
    module = start(arguments[1]);
    CALL(cuCtxGetCurrent(&context));
    CUstream stream, other;
    CALL(cuStreamCreate(&stream, 1));
    CALL(cuStreamCreate(&other, 1));
    CUevent begin, end;
    CALL(cuEventCreate(&begin, 0));
    CALL(cuEventCreate(&end, 0));
    CUfunction store = kernel(module, "store");
    CUdeviceptr memory;
    CALL(cuMemAlloc_v2(&memory, 4096));

    // A kernel waits for the host.
    int *flag;
    CALL(cuMemHostAlloc((void **)&flag, 8, 2));
    flag[0] = flag[1] = 0;
    int *seen = flag + 1;
    CUfunction wait_for = kernel(module, "wait_for");
    CALL(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&flag, &seen}, 0));
    usleep(20000);
    EXPECT(600, cuStreamQuery(stream));
    size_t available, total;
    CALL(cuMemGetInfo_v2(&available, &total));
    __atomic_store_n(flag, 9, __ATOMIC_RELEASE);
    CALL(cuStreamSynchronize(stream));
    CALL(cuStreamQuery(stream));
    CHECK(*seen == 9);

    // Times count work: they are the same in each run.
    float milliseconds, again;
    int value = 1;
    EXPECT(400, cuEventElapsedTime(&milliseconds, begin, end));
    for (int round = 0; round < 2; round++) {
        CALL(cuEventRecord(begin, stream));
        CALL(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&memory, &value}, 0));
        CALL(cuEventRecord(end, stream));
        CALL(cuStreamWaitEvent(other, end, 0));
        CALL(cuEventSynchronize(end));
        CALL(cuEventElapsedTime(round ? &again : &milliseconds, begin, end));
    }
    CHECK(milliseconds > 0.002f && milliseconds < 0.01f && milliseconds == again);

    int one = 1;
    CALL(cuLaunchHostFunc(stream, called, &one));
    CALL(cuStreamSynchronize(stream));
    CHECK(calls == 1);

    // Nothing is executed while a stream is captured.
    CUgraph graph;
    CUgraphExec executable;
    CALL(cuMemsetD32_v2(memory, 0, 1));
    CALL(cuStreamBeginCapture_v2(stream, 0));
    value = 17;
    CALL(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&memory, &value}, 0));
    CALL(cuLaunchHostFunc(stream, called, &one));
    EXPECT(900, cuStreamSynchronize(stream));
    CALL(cuStreamEndCapture(stream, &graph));
    int found;
    CALL(cuMemcpyDtoH_v2(&found, memory, 4));
    CHECK(found == 0 && calls == 1);
    CALL(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CALL(cuGraphLaunch(executable, stream));
    CALL(cuGraphLaunch(executable, stream));
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemcpyDtoH_v2(&found, memory, 4));
    CHECK(found == 17 && calls == 3);

    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, in_thread, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    puts("streams: ok");
    return 0;
}
