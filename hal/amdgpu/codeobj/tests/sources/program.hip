// A kernel in a HIP program. The declarations replace the HIP headers.
struct dim3 {
  unsigned x, y, z;
};
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;
extern "C" hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                      unsigned long shared, hipStream_t stream);

__attribute__((global)) void add(int *values) {
  values[__builtin_amdgcn_workitem_id_x()] += 1;
}
