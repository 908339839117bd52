// The program unmaps memory that is still mapped for the GPU.
#include "../check.h"

#include <sys/mman.h>

__global__ void write(int *place) { *place = 1; }

int main() {
    const size_t bytes = 1 << 20;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED, "no memory");
    HIP(hipHostRegister(memory, bytes, hipHostRegisterDefault));
    int *device;
    HIP(hipHostGetDevicePointer((void **)&device, memory, 0));
    write<<<1, 1>>>(device);
    HIP(hipDeviceSynchronize());
    EXPECT(*(volatile int *)memory == 1, "the kernel has not written");
    munmap((char *)memory + bytes / 2, bytes / 2);
    // The rest of the memory is still mapped for the GPU.
    write<<<1, 1>>>(device + 1);
    HIP(hipDeviceSynchronize());
    EXPECT(((volatile int *)memory)[1] == 1, "the kernel has not written to what is left");
    write<<<1, 1>>>(device + bytes / 2 / sizeof(int));
    HIP(hipDeviceSynchronize());
    printf("the kernel has written where nothing is\n");
}
