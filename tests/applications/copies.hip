// Copies and fills of every shape: between host and device and within the device, asynchronous,
// rectangles and boxes with a pitch, with odd sizes and at unaligned addresses.
#include "check.h"

#include <cstring>

typedef std::vector<unsigned char> Bytes;

Bytes noise(size_t count, uint32_t seed) {
    Random random(seed);
    Bytes bytes(count);
    for (unsigned char &byte : bytes)
        byte = (unsigned char)random.word();
    return bytes;
}

void lines() {
    // Sizes close to those of a packet, a page and a word.
    for (size_t count : {1, 3, 4, 63, 4095, 4097, 70001}) {
        Bytes bytes = noise(count, (uint32_t)count), expected = bytes;
        unsigned char *a = to_device(bytes), *b = nullptr;
        HIP(hipMalloc((void **)&b, count + 7));
        HIP(hipMemset(b, 0xee, count + 7));
        HIP(hipMemcpy(b + 5, a, count, hipMemcpyDeviceToDevice));
        HIP(hipMemcpyDtoD(b, b + 5, count < 5 ? count : 5));
        expected.insert(expected.begin(), 5, 0xee);
        for (size_t i = 0; i < (count < 5 ? count : 5); i++)
            expected[i] = bytes[i];
        expected.insert(expected.end(), 2, 0xee);
        expect_equal("copy on the device", from_device(b, count + 7), expected);

        hipStream_t stream;
        HIP(hipStreamCreate(&stream));
        Bytes back(count);
        HIP(hipMemsetAsync(a, 0, count, stream));
        HIP(hipMemcpyAsync(a + count / 2, b + 5, count - count / 2, hipMemcpyDefault, stream));
        HIP(hipMemcpyAsync(back.data(), a, count, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
        Bytes moved(count);
        for (size_t i = count / 2; i < count; i++)
            moved[i] = bytes[i - count / 2];
        expect_equal("asynchronous copy", back, moved);
        HIP(hipStreamDestroy(stream));
        HIP(hipFree(a));
        HIP(hipFree(b));
    }
}

void rectangles() {
    const size_t width = 37, height = 21, host_pitch = 50;
    Bytes image = noise(host_pitch * height, 1), back(host_pitch * height, 9), expected = back;
    unsigned char *a = nullptr, *b = nullptr;
    size_t pitch = 0;
    HIP(hipMallocPitch((void **)&a, &pitch, width, height));
    EXPECT(pitch >= width, "a pitch of %zu for rows of %zu", pitch, width);
    HIP(hipMalloc((void **)&b, 41 * height));
    HIP(hipMemset2D(a, pitch, 0xaa, width, height));
    HIP(hipMemcpy2D(a, pitch, image.data(), host_pitch, width - 3, height - 1,
                    hipMemcpyHostToDevice));
    HIP(hipMemcpy2D(b, 41, a, pitch, width, height, hipMemcpyDeviceToDevice));
    HIP(hipMemset2DAsync(b, 41, 0x55, 2, height, nullptr));
    HIP(hipMemcpy2DAsync(back.data(), host_pitch, b, 41, width, height, hipMemcpyDeviceToHost,
                         nullptr));
    HIP(hipDeviceSynchronize());
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            bool is_copied = x < width - 3 && y < height - 1;
            unsigned char filled = is_copied ? image[y * host_pitch + x] : 0xaa;
            expected[y * host_pitch + x] = x < 2 ? 0x55 : filled;
        }
    expect_equal("rectangle", back, expected);
    HIP(hipFree(a));
    HIP(hipFree(b));
}

void boxes() {
    const size_t width = 19, height = 7, depth = 5;
    hipExtent extent = make_hipExtent(width, height, depth);
    Bytes volume = noise(width * height * depth, 2), back(volume.size());
    hipPitchedPtr device;
    HIP(hipMalloc3D(&device, extent));
    HIP(hipMemset3D(device, 0x77, extent));
    hipMemcpy3DParms in;
    memset(&in, 0, sizeof(in));
    in.srcPtr = make_hipPitchedPtr(volume.data(), width, width, height);
    in.dstPtr = device;
    in.dstPos = make_hipPos(2, 1, 1);
    in.extent = make_hipExtent(width - 4, height - 2, depth - 3);
    in.kind = hipMemcpyHostToDevice;
    HIP(hipMemcpy3D(&in));
    hipMemcpy3DParms out;
    memset(&out, 0, sizeof(out));
    out.srcPtr = device;
    out.dstPtr = make_hipPitchedPtr(back.data(), width, width, height);
    out.extent = extent;
    out.kind = hipMemcpyDeviceToHost;
    HIP(hipMemcpy3DAsync(&out, nullptr));
    HIP(hipDeviceSynchronize());
    Bytes expected(volume.size(), 0x77);
    for (size_t z = 0; z < depth - 3; z++)
        for (size_t y = 0; y < height - 2; y++)
            for (size_t x = 0; x < width - 4; x++)
                expected[((z + 1) * height + y + 1) * width + x + 2] =
                    volume[(z * height + y) * width + x];
    expect_equal("box", back, expected);
    HIP(hipFree(device.ptr));
}

void words() {
    unsigned char *device = nullptr;
    HIP(hipMalloc((void **)&device, 64));
    HIP(hipMemset(device, 0, 64));
    HIP(hipMemsetD8(device + 41, 0x12, 13));
    HIP(hipMemsetD16(device + 6, 0x3456, 3));
    HIP(hipMemsetD32(device + 16, 0x789abcde, 5));
    Bytes expected(64);
    for (int i = 41; i < 54; i++)
        expected[i] = 0x12;
    for (int i = 6; i < 12; i++)
        expected[i] = i % 2 ? 0x34 : 0x56;
    for (int i = 16; i < 36; i++)
        expected[i] = 0x789abcde >> i % 4 * 8 & 0xff;
    expect_equal("filled words", from_device(device, 64), expected);
    HIP(hipFree(device));
}

int main() {
    lines();
    rectangles();
    boxes();
    words();
    return passed();
}
