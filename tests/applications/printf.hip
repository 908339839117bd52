// printf on the device: every kind of argument, from many lanes. The program reads its own output.
#include "check.h"

#include <algorithm>
#include <unistd.h>

__global__ void kinds(const void *pointer) {
    printf("plain\n");
    printf("%d %u %x %#o %c %5d|%-5d|%05d\n", -7, 4000000000u, 0xbeef, 8, 'q', 42, 42, 42);
    printf("%lld %llu %hd\n", -1234567890123LL, 18446744073709551615ULL, (short)-3);
    printf("%f %.3f %e %g\n", 1.5, -2.0f / 3, 12345.678, 1e-10);
    printf("%s and %s, %.3s, %%\n", "text", "a somewhat longer text than fits in one packet of it",
           "cut off");
    printf("%*d|%p\n", 6, 17, pointer);
}

// Some lanes of several waves print.
__global__ void lanes() {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 7 == 3)
        printf("lane %d of workgroup %d\n", (int)threadIdx.x, (int)blockIdx.x);
}

// Captures standard output while `work` runs.
template <typename Work> std::string printed(Work work) {
    fflush(stdout);
    FILE *file = tmpfile();
    int saved_stdout = dup(1);
    EXPECT(file && saved_stdout >= 0 && dup2(fileno(file), 1) == 1,
           "standard output cannot be redirected");
    work();
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    fflush(stdout);
    dup2(saved_stdout, 1);
    close(saved_stdout);
    std::string text;
    rewind(file);
    for (int character; (character = getc(file)) != EOF;)
        text += (char)character;
    fclose(file);
    return text;
}

int main() {
    void *pointer = (void *)0x7f0012345678;
    std::string text = printed([=] { kinds<<<1, 1>>>(pointer); });
    const char *expected = "plain\n"
                           "-7 4000000000 beef 010 q    42|42   |00042\n"
                           "-1234567890123 18446744073709551615 -3\n"
                           "1.500000 -0.667 1.234568e+04 1e-10\n"
                           "text and a somewhat longer text than fits in one packet of it, cut, %\n"
                           "    17|0x7f0012345678\n";
    EXPECT(text == expected, "printed:\n%snot:\n%s", text.c_str(), expected);

    // Lines may be in any order, but each is complete and printed once.
    text = printed([] { lanes<<<3, 100>>>(); });
    std::vector<std::string> lines, wanted;
    for (size_t begin = 0; begin < text.size();) {
        size_t end = text.find('\n', begin);
        lines.push_back(text.substr(begin, end - begin));
        begin = end == std::string::npos ? end : end + 1;
    }
    for (int i = 3; i < 300; i += 7)
        wanted.push_back("lane " + std::to_string(i % 100) + " of workgroup " +
                         std::to_string(i / 100));
    std::sort(lines.begin(), lines.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT(lines == wanted, "%zu lines printed, not %zu:\n%s", lines.size(), wanted.size(),
           text.c_str());
    return passed();
}
