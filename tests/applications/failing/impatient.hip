// A kernel that uses a loaded value without waiting for it: correct on the embedded GPU, undefined
// on hardware.
#include "../check.h"

__global__ void impatient(const int *in, int *out) {
    const int *source = in + threadIdx.x;
    int value;
    asm volatile("global_load_dword %0, %1, off\n"
                 "v_add_u32 %0, 1, %0\n"
                 "s_waitcnt vmcnt(0)"
                 : "=&v"(value)
                 : "v"(source)
                 : "memory");
    out[threadIdx.x] = value;
}

int main() {
    int *in = to_device(std::vector<int>(64)), *out = to_device(std::vector<int>(64));
    impatient<<<1, 64>>>(in, out);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
