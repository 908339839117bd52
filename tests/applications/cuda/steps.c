// A program on CUDA's driver API, which it loads as programs without NVIDIA's headers do. Prints every bit of its
// results: steps in device memory, and a sum in managed memory. With the argument `grid`, workgroups that wait for each
// other compute the steps. With `careless`, a kernel breaks rules of PTX before, without effect on the results.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer;

static void *library;

static int call(const char *name, long a, long b, long c, long d)
{
    int (*function)(long, long, long, long) = (int (*)(long, long, long, long))dlsym(library, name);
    if (!function) {
        fprintf(stderr, "no function %s\n", name);
        exit(3);
    }
    int result = function(a, b, c, d);
    if (result) {
        int (*get_name)(int, const char **) = (int (*)(int, const char **))dlsym(library, "cuGetErrorName");
        const char *text = 0;
        get_name(result, &text);
        fprintf(stderr, "%s: %s\n", name, text);
        exit(1);
    }
    return result;
}

typedef int launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

typedef int together(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);

static void start(void *kernel, int grid, int block, void **arguments)
{
    launch *function = (launch *)dlsym(library, "cuLaunchKernel");
    if (function(kernel, grid, 1, 1, block, 1, 1, 0, 0, arguments, 0)) {
        fputs("the launch failed\n", stderr);
        exit(1);
    }
}

static void start_together(void *kernel, int grid, int block, void **arguments)
{
    together *function = (together *)dlsym(library, "cuLaunchCooperativeKernel");
    int result = function(kernel, grid, 1, 1, block, 1, 1, 0, 0, arguments);
    if (result) {
        fprintf(stderr, "the cooperative launch failed: %d\n", result);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    enum { N = 100 };
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    void *context, *module, *step, *sum;
    call("cuInit", 0, 0, 0, 0);
    call("cuCtxCreate_v2", (long)&context, 0, 0, 0);
    call("cuModuleLoad", (long)&module, (long)arguments[1], 0, 0);
    call("cuModuleGetFunction", (long)&step, (long)module, (long)"step", 0);
    call("cuModuleGetFunction", (long)&sum, (long)module, (long)"sum", 0);
    float host[N], factor = 0.5f;
    for (int i = 0; i < N; i++)
        host[i] = i * 1.25f - 20;
    pointer in, out, total;
    int n = N;
    unsigned rounds = 8;
    call("cuMemAlloc_v2", (long)&in, sizeof host, 0, 0);
    call("cuMemAlloc_v2", (long)&out, sizeof host, 0, 0);
    call("cuMemAllocManaged", (long)&total, 4, 1, 0);
    *(unsigned *)total = 7;
    call("cuMemcpyHtoD_v2", (long)in, (long)host, sizeof host, 0);
    if (count > 2 && !strcmp(arguments[2], "wild")) {
        void *wild;
        call("cuModuleGetFunction", (long)&wild, (long)module, (long)"wild", 0);
        start(wild, 1, 1, (void *[]){&out});
        call("cuCtxSynchronize", 0, 0, 0, 0);
    }
    if (count > 2 && !strcmp(arguments[2], "careless")) {
        void *careless;
        call("cuModuleGetFunction", (long)&careless, (long)module, (long)"careless", 0);
        start(careless, 1, 32, (void *[]){&in, &out});
        start(careless, 1, 32, (void *[]){&in, &out});
    }
    if (count > 2 && !strcmp(arguments[2], "grid")) {
        void *relax;
        pointer arrived;
        call("cuModuleGetFunction", (long)&relax, (long)module, (long)"relax", 0);
        call("cuMemAlloc_v2", (long)&arrived, 4, 0, 0);
        call("cuMemsetD32_v2", (long)arrived, 0, 1, 0);
        unsigned groups = count > 3 ? atoi(arguments[3]) : 4;
        // After an odd number of rounds, the results are in `out`.
        rounds = 7;
        start_together(relax, groups, 32, (void *[]){&in, &out, &n, &rounds, &arrived});
    } else {
        start(step, 4, 32, (void *[]){&in, &out, &factor, &n, &rounds});
    }
    start(sum, 4, 32, (void *[]){&out, &total, &n});
    call("cuMemcpyDtoH_v2", (long)host, (long)out, sizeof host, 0);
    for (int i = 0; i < N; i++) {
        unsigned bits;
        memcpy(&bits, &host[i], 4);
        printf("%08x%c", bits, i % 10 == 9 ? '\n' : ' ');
    }
    printf("sum %u\n", *(unsigned *)total);
    return 0;
}
