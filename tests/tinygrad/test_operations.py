"""Operations of tinygrad on the embedded GPU, compared with NumPy."""
import unittest

import numpy as np
from tinygrad import Tensor, TinyJit, dtypes


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    """Random numbers between -2 and 2."""
    return np.random.RandomState(seed).uniform(-2, 2, shape).astype(np.float32)


class TestOperations(unittest.TestCase):
    def check(self, result: Tensor, expected: np.ndarray, tolerance: float = 1e-5) -> None:
        self.assertTrue(result.device.startswith("AMD"), result.device)
        np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)

    def test_addition(self) -> None:
        a, b = numbers(45, 65), numbers(45, 65, seed=2)
        self.check(Tensor(a) + Tensor(b), a + b)

    def test_broadcast_and_division(self) -> None:
        a, b = numbers(45, 65), np.abs(numbers(65, seed=2)) + 1
        self.check(Tensor(a) / Tensor(b), a / b)

    def test_exponential_and_logarithm(self) -> None:
        a = np.abs(numbers(1000)) + 0.1
        self.check(Tensor(a).exp(), np.exp(a))
        self.check(Tensor(a).log(), np.log(a))

    def test_sine(self) -> None:
        a = numbers(1000)
        self.check(Tensor(a).sin(), np.sin(a))

    def test_sum_over_many_workgroups(self) -> None:
        a = numbers(300, 200)
        self.check(Tensor(a).sum(), a.astype(np.float64).sum(), 1e-3)
        self.check(Tensor(a).sum(axis=0), a.sum(axis=0), 1e-4)

    def test_matrix_product(self) -> None:
        a, b = numbers(64, 96), numbers(96, 80, seed=2)
        self.check(Tensor(a) @ Tensor(b), a @ b, 1e-4)

    def test_softmax(self) -> None:
        a = numbers(45, 65)
        exponentials = np.exp(a - a.max(axis=1, keepdims=True))
        self.check(Tensor(a).softmax(axis=1), exponentials / exponentials.sum(axis=1, keepdims=True))

    def test_convolution(self) -> None:
        image, weights = numbers(1, 3, 12, 12), numbers(4, 3, 3, 3, seed=2)
        windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
        self.check(Tensor(image).conv2d(Tensor(weights))[0], np.einsum("cyxij,kcij->kyx", windows, weights), 1e-4)

    def test_integers_and_indices(self) -> None:
        a = np.random.RandomState(1).randint(-1000, 1000, (40, 30)).astype(np.int32)
        self.check(Tensor(a) * 3 - 7, a * 3 - 7, 0)
        self.check(Tensor(a)[Tensor([3, 1, 39])], a[[3, 1, 39]], 0)
        self.check(Tensor(a).argmax(axis=1), a.argmax(axis=1), 0)

    def test_half_precision(self) -> None:
        a = numbers(500)
        self.check((Tensor(a).cast(dtypes.half) * 3).cast(dtypes.float), (a.astype(np.float16) * 3).astype(np.float32), 1e-3)

    def test_gradient(self) -> None:
        a, b = numbers(8, 8), numbers(8, 8, seed=2)
        x = Tensor(a).is_param_(True)
        ((x @ Tensor(b)) ** 2).sum().backward()
        self.check(x.grad, 2 * (a @ b) @ b.T, 1e-4)

    def test_graph_of_kernels(self) -> None:
        step = TinyJit(lambda x: ((x * 2).contiguous() + 1).contiguous().sum(axis=0).realize())
        for seed in range(5):
            a = numbers(64, 32, seed=seed)
            self.check(step(Tensor(a).realize()), (2 * a + 1).sum(axis=0), 1e-4)

    def test_more_registers_than_a_wave_has(self) -> None:
        # A kernel with private memory: a large unrolled product.
        a = numbers(16, 16)
        expected = a
        x = Tensor(a)
        for _ in range(3):
            x, expected = (x @ x).contiguous(), expected @ expected
            scale = np.abs(expected).max()
            x, expected = x / float(scale), expected / scale
        self.check(x, expected, 1e-3)


if __name__ == "__main__":
    unittest.main()
