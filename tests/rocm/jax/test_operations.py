"""Operations of JAX on the embedded GPU, compared with NumPy."""

import os
import sys
import unittest

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, os.environ["EXAMPLE"])
import train

# The default on gfx942 is XF32, with 10 bits of each factor.
jax.config.update("jax_default_matmul_precision", "highest")


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    """Random numbers between -2 and 2."""
    return np.random.RandomState(seed).uniform(-2, 2, shape).astype(np.float32)


class TestOperations(unittest.TestCase):
    def check(self, result: jax.Array, expected: np.ndarray, tolerance: float = 1e-5) -> None:
        self.assertEqual({device.platform for device in result.devices()}, {"gpu"})
        np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)

    def test_elementwise(self) -> None:
        a, b = numbers(45, 65), np.abs(numbers(45, 65, seed=2)) + 0.1
        self.check(jnp.asarray(a) + b, a + b)
        self.check(jnp.asarray(a) / b, a / b)
        self.check(jnp.sin(a), np.sin(a))
        self.check(jnp.exp(a), np.exp(a))
        self.check(jnp.log(b), np.log(b))
        self.check(jnp.where(jnp.asarray(a) > 0, a, b), np.where(a > 0, a, b))

    def test_integers(self) -> None:
        a = np.arange(-500, 500, dtype=np.int32)
        self.check(jnp.asarray(a) * 7 % 13, a * 7 % 13)
        self.check(jnp.asarray(a) >> 2, a >> 2)

    def test_reductions(self) -> None:
        a = numbers(300, 200)
        self.check(jnp.sum(a), a.astype(np.float64).sum(), 1e-3)
        self.check(jnp.sum(a, axis=0), a.sum(axis=0), 1e-4)
        self.check(jnp.max(a, axis=1), a.max(axis=1))
        self.check(jnp.argmin(a, axis=1), a.argmin(axis=1))
        self.check(jnp.cumsum(a[0]), np.cumsum(a[0]), 1e-4)

    def test_sorting(self) -> None:
        a = numbers(1000)
        self.check(jnp.sort(a), np.sort(a))

    def test_softmax(self) -> None:
        a = numbers(20, 30)
        expected = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
        self.check(jax.nn.softmax(jnp.asarray(a), axis=1), expected)

    def test_gathering(self) -> None:
        a, rows = numbers(64, 8), np.random.RandomState(3).randint(0, 64, 100)
        self.check(jnp.asarray(a)[rows], a[rows])
        expected = np.zeros((64, 8), np.float32)
        np.add.at(expected, rows, 1)
        self.check(jnp.zeros((64, 8), jnp.float32).at[rows].add(1), expected)

    def test_matrix_products(self) -> None:
        for m, k, n in [(8, 8, 8), (64, 32, 48), (45, 65, 33)]:
            a, b = numbers(m, k), numbers(k, n, seed=2)
            self.check(jnp.asarray(a) @ b, a @ b, 1e-4)
        square = numbers(8, 8)
        self.check(jnp.asarray(square) @ jnp.asarray(square).T, square @ square.T, 1e-4)
        batch = numbers(3, 16, 16)
        self.check(jnp.matmul(batch, batch), np.matmul(batch, batch), 1e-4)

    def test_half_precision(self) -> None:
        a, b = numbers(32, 32).astype(np.float16), numbers(32, 32, seed=2).astype(np.float16)
        expected = a.astype(np.float32) @ b.astype(np.float32)
        self.check((jnp.asarray(a) @ b).astype(jnp.float32), expected, 2e-2)

    def test_gradients(self) -> None:
        a = numbers(50)
        self.check(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(jnp.asarray(a)), np.cos(a) * a + np.sin(a))
        per_row = jax.vmap(jax.grad(lambda row: jnp.prod(row)))(jnp.asarray(numbers(5, 3)))
        rows = numbers(5, 3)
        self.check(per_row, rows.prod(axis=1, keepdims=True) / rows, 1e-4)

    def test_loop(self) -> None:
        result = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda _, value: value * 0.5 + 1, x))(jnp.asarray(numbers(33)))
        expected = numbers(33)
        for _ in range(10):
            expected = expected * np.float32(0.5) + 1
        self.check(result, expected)

    def test_training(self) -> None:
        """Losses of 20 steps agree with those of NumPy; a planted error does not."""
        expected = train.with_numpy(20)
        np.testing.assert_allclose(train.with_jax(20), expected, rtol=1e-3)
        train.RATE, rate = train.RATE * 1.1, train.RATE
        planted = train.with_jax(20)
        train.RATE = rate
        self.assertGreater(abs(planted[-1] - expected[-1]), 1e-3 * expected[-1])


if __name__ == "__main__":
    unittest.main()
