// A kernel samples an image on a GPU without an image unit.
#include "../check.h"

__global__ void sample(float *out) {
    float texel;
    asm volatile("v_mov_b32 v0, 0\n\tv_mov_b32 v1, 0\n\t"
                 "image_sample %0, v[0:1], s[0:7], s[0:3] dmask:0x1\n\t"
                 "s_waitcnt vmcnt(0)"
                 : "=v"(texel)
                 :
                 : "v0", "v1");
    *out = texel;
}

int main() {
    float *out = nullptr;
    HIP(hipMalloc((void **)&out, sizeof(float)));
    sample<<<1, 1>>>(out);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
