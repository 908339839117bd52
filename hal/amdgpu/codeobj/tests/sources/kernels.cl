// Kernels that use every part of a code object: arguments of several kinds, LDS, scratch, a device
// function, and global data with a relocation. They call compiler builtins because the OpenCL
// library has no bitcode for the newest processors.

#define LOCAL_ID __builtin_amdgcn_workitem_id_x()
#define GROUP_ID __builtin_amdgcn_workgroup_id_x()
#define GLOBAL_ID (GROUP_ID * __builtin_amdgcn_workgroup_size_x() + LOCAL_ID)

__constant int table[4] = {1, 2, 3, 5};
__global int *__global pointer = (__global int *)0;
__global int counter = 7;
__global int *__global address_of_counter = &counter;

__attribute__((noinline)) int twice(int value) {
  return value * 2 + counter;
}

__kernel void saxpy(float a, __global const float *restrict x, __global float *y, uint n) {
  size_t i = GLOBAL_ID;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

__kernel __attribute__((reqd_work_group_size(64, 2, 1))) void reduce(__global int *out,
                                                                     __local int *dynamic) {
  __local int fixed[128];
  size_t lane = LOCAL_ID;
  fixed[lane] = table[lane & 3];
  dynamic[lane] = twice(fixed[lane ^ 1]);
  __builtin_amdgcn_s_barrier();
  out[GROUP_ID] = fixed[0] + dynamic[1] + *address_of_counter;
}

__kernel void spill(__global int *out, int index, char tag) {
  volatile int scratch[32];
  for (int i = 0; i < 32; i++)
    scratch[i] = i * index;
  out[index] = scratch[index & 31] + tag;
  pointer = out;
}
