"""Operations of CuPy on the embedded GPU, compared with NumPy."""

import unittest

import cupy
import numpy as np

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] += a * x[i];
}
"""


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    """Random numbers between -2 and 2."""
    return np.random.RandomState(seed).uniform(-2, 2, shape).astype(np.float32)


class TestOperations(unittest.TestCase):
    def check(self, result: cupy.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
        np.testing.assert_allclose(result.get(), expected, rtol=tolerance, atol=tolerance)

    def test_elementwise(self) -> None:
        a, b = numbers(45, 65), np.abs(numbers(45, 65, seed=2)) + 0.1
        self.check(cupy.asarray(a) / cupy.asarray(b), a / b)
        self.check(cupy.sqrt(cupy.asarray(b)), np.sqrt(b))

    def test_reductions(self) -> None:
        a = numbers(100, 30)
        self.check(cupy.asarray(a).sum(), a.astype(np.float64).sum(), 1e-4)
        self.check(cupy.asarray(a).max(axis=0), a.max(axis=0))

    def test_kernel_of_the_program(self) -> None:
        x, y = numbers(1000), numbers(1000, seed=2)
        result = cupy.asarray(y)
        cupy.RawKernel(SAXPY, "saxpy")((4,), (256,), (np.float32(3), cupy.asarray(x), result, np.int32(1000)))
        self.check(result, 3 * x + y)
        # Negative control: another factor is noticed.
        with self.assertRaises(AssertionError):
            self.check(result, 3.01 * x + y)

    def test_matrix_product(self) -> None:
        a, b = numbers(45, 65), numbers(65, 33, seed=2)
        self.check(cupy.asarray(a) @ cupy.asarray(b), a @ b, 1e-4)


if __name__ == "__main__":
    unittest.main()
