// An OpenCL program that checks its results: kernels compiled by the vendor's runtime, with buffers, shared memory,
// barriers, atomics and doubles. Ends with `passed` or with a line that describes the failure.
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4096, GROUP = 256 };

static const char *const source =
    "__kernel void saxpy(float a, __global const float *x, __global float *y) {\n"
    "    size_t i = get_global_id(0);\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n"
    "__kernel void sums(__global const float *x, __global double *sums, __global int *groups) {\n"
    "    __local double part[256];\n"
    "    size_t lane = get_local_id(0);\n"
    "    part[lane] = x[get_global_id(0)];\n"
    "    for (size_t step = get_local_size(0) / 2; step > 0; step /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (lane < step)\n"
    "            part[lane] += part[lane + step];\n"
    "    }\n"
    "    if (lane == 0) {\n"
    "        sums[get_group_id(0)] = part[0];\n"
    "        atomic_inc(groups);\n"
    "    }\n"
    "}\n";

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS)
        return;
    printf("%s gives %d\n", what, status);
    exit(1);
}

// Checks that a call returns CL_SUCCESS, directly or through its last argument.
#define DO(call) check(call, #call)
#define MAKE(type, name, function, ...)                                                            \
    cl_int name##_status;                                                                          \
    type name = function(__VA_ARGS__, &name##_status);                                             \
    check(name##_status, #function)

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    DO(clGetPlatformIDs(1, &platform, NULL));
    DO(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    MAKE(cl_context, context, clCreateContext, NULL, 1, &device, NULL, NULL);
    MAKE(cl_command_queue, queue, clCreateCommandQueueWithProperties, context, device, NULL);
    const char *text = source;
    MAKE(cl_program, program, clCreateProgramWithSource, context, 1, &text, NULL);
    DO(clBuildProgram(program, 1, &device, "", NULL, NULL));

    static float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 100) - 50;
        y[i] = (float)i;
    }
    static double sums[COUNT / GROUP];
    int groups = 0;
    const cl_mem_flags copied = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    MAKE(cl_mem, device_x, clCreateBuffer, context, copied, sizeof(x), x);
    MAKE(cl_mem, device_y, clCreateBuffer, context, copied, sizeof(y), y);
    MAKE(cl_mem, device_sums, clCreateBuffer, context, copied, sizeof(sums), sums);
    MAKE(cl_mem, device_groups, clCreateBuffer, context, copied, sizeof(groups), &groups);

    MAKE(cl_kernel, saxpy, clCreateKernel, program, "saxpy");
    const float a = 2.5f;
    DO(clSetKernelArg(saxpy, 0, sizeof(a), &a));
    DO(clSetKernelArg(saxpy, 1, sizeof(device_x), &device_x));
    DO(clSetKernelArg(saxpy, 2, sizeof(device_y), &device_y));
    MAKE(cl_kernel, add, clCreateKernel, program, "sums");
    DO(clSetKernelArg(add, 0, sizeof(device_y), &device_y));
    DO(clSetKernelArg(add, 1, sizeof(device_sums), &device_sums));
    DO(clSetKernelArg(add, 2, sizeof(device_groups), &device_groups));
    const size_t all = COUNT, group = GROUP;
    DO(clEnqueueNDRangeKernel(queue, saxpy, 1, NULL, &all, &group, 0, NULL, NULL));
    DO(clEnqueueNDRangeKernel(queue, add, 1, NULL, &all, &group, 0, NULL, NULL));
    static float result[COUNT];
    DO(clEnqueueReadBuffer(queue, device_y, CL_TRUE, 0, sizeof(result), result, 0, NULL, NULL));
    DO(clEnqueueReadBuffer(queue, device_sums, CL_TRUE, 0, sizeof(sums), sums, 0, NULL, NULL));
    DO(clEnqueueReadBuffer(queue, device_groups, CL_TRUE, 0, sizeof(groups), &groups, 0, NULL, NULL));

    double sum = 0, expected = 0;
    for (int i = 0; i < COUNT; i++) {
        // All values are exact.
        if (result[i] != a * x[i] + y[i]) {
            printf("y[%d] is %g, not %g\n", i, result[i], a * x[i] + y[i]);
            return 1;
        }
        expected += result[i];
    }
    for (int i = 0; i < COUNT / GROUP; i++)
        sum += sums[i];
    if (sum != expected || groups != COUNT / GROUP) {
        printf("the sum is %g of %d groups, not %g of %d\n", sum, groups, expected, COUNT / GROUP);
        return 1;
    }
    puts("passed");
    return 0;
}
