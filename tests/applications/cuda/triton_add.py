"""Launches a kernel of Triton on managed memory, and compares the result with Python's."""

import ctypes

import triton
import triton.language as tl

CUDA = ctypes.CDLL("libcuda.so.1")


class Buffer:
    """Floats in managed memory, which Triton accepts like a tensor."""

    dtype = "float32"

    def __init__(self, values):
        self.pointer = ctypes.c_uint64()
        count = len(values)
        assert CUDA.cuMemAllocManaged(ctypes.byref(self.pointer), ctypes.c_size_t(4 * count), 1) == 0
        self.values = (ctypes.c_float * count).from_address(self.pointer.value)
        self.values[:] = values

    def data_ptr(self):
        return self.pointer.value


@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


driver = triton.runtime.driver.active
driver.set_current_device(driver.get_current_device())
COUNT = 1000
first, second, result = Buffer(range(COUNT)), Buffer(range(0, 2 * COUNT, 2)), Buffer([0] * COUNT)
add[(triton.cdiv(COUNT, 256),)](first, second, result, COUNT, BLOCK=256)
assert CUDA.cuCtxSynchronize() == 0
assert list(result.values) == [3 * i for i in range(COUNT)]
print("add: ok")
