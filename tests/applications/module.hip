// A separate code object (module.kernel.hip, whose path is the argument): loaded from the file and
// from memory; kernels are found by name and launched with arguments in both forms.
#include "check.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

struct Pair {
    char small;
    double large;
};

void check(hipModule_t module, int factor) {
    hipFunction_t scale, sum_of_pairs;
    HIP(hipModuleGetFunction(&scale, module, "scale"));
    HIP(hipModuleGetFunction(&sum_of_pairs, module, "sum_of_pairs"));
    hipFunction_t missing;
    HIP_GIVES(hipErrorNotFound, hipModuleGetFunction(&missing, module, "no_such_kernel"));

    const int count = 1000;
    std::vector<int> in(count), expected(count);
    for (int i = 0; i < count; i++) {
        in[i] = i * i - 5000;
        expected[i] = in[i] * factor;
    }
    int *device_in = to_device(in), *device_out = to_device(in), size = count;
    void *arguments[] = {&device_in, &device_out, &size};
    HIP(hipModuleLaunchKernel(scale, (count + 63) / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments,
                              nullptr));
    expect_equal("scaled", from_device(device_out, count), expected);

    // Arguments as one block of memory in the layout of the kernel.
    struct {
        Pair pair;
        double *out;
    } block = {{3, 0.5}, to_device(std::vector<double>(2))};
    size_t bytes = sizeof(block);
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    HIP(hipModuleLaunchKernel(sum_of_pairs, 2, 1, 1, 100, 1, 1, 100 * sizeof(double), nullptr,
                              nullptr, extra));
    // 3 in each lane, and 0.5 times 0 + 1 + ... + 99.
    expect_equal("sums of pairs", from_device(block.out, 2), std::vector<double>(2, 2775));
    HIP(hipFree(device_in));
    HIP(hipFree(device_out));
    HIP(hipFree(block.out));
}

// Overwrites all instructions of the code objects in an image with the end of the program.
void end_at_once(std::vector<char> &image) {
    const char magic[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3};
    auto next = image.begin();
    while ((next = std::search(next, image.end(), magic, magic + 4)) != image.end()) {
        char *file = &*next++;
        Elf64_Ehdr header;
        memcpy(&header, file, sizeof(header));
        for (int i = 0; header.e_machine == EM_AMDGPU && i < header.e_phnum; i++) {
            Elf64_Phdr segment;
            memcpy(&segment, file + header.e_phoff + i * sizeof(segment), sizeof(segment));
            const unsigned end = 0xbf810000;
            for (size_t at = 0; segment.p_flags & PF_X && at < segment.p_filesz; at += sizeof(end))
                memcpy(file + segment.p_offset + at, &end, sizeof(end));
        }
    }
}

int main(int argc, char **argv) {
    EXPECT(argc == 2, "usage: %s CODE_OBJECT", argv[0]);
    hipModule_t module;
    HIP(hipModuleLoad(&module, argv[1]));
    check(module, 2);
    // Changes a variable of the module.
    hipDeviceptr_t factor = nullptr;
    size_t bytes = 0;
    HIP(hipModuleGetGlobal(&factor, &bytes, module, "factor"));
    EXPECT(bytes == sizeof(int), "factor has %zu bytes", bytes);
    int other = -7;
    HIP(hipMemcpyHtoD(factor, &other, sizeof(other)));
    check(module, other);
    HIP(hipModuleUnload(module));

    FILE *file = fopen(argv[1], "rb");
    EXPECT(file, "%s cannot be read", argv[1]);
    std::vector<char> image;
    for (int byte; (byte = getc(file)) != EOF;)
        image.push_back((char)byte);
    fclose(file);
    HIP(hipModuleLoadData(&module, image.data()));
    check(module, 2);
    HIP(hipModuleUnload(module));
    // The loaded image is not read again: its memory may now contain other code.
    HIP(hipModuleLoadData(&module, image.data()));
    end_at_once(image);
    check(module, 2);
    HIP(hipModuleUnload(module));
    HIP_GIVES(hipErrorFileNotFound, hipModuleLoad(&module, "no/such/file"));
    return passed();
}
