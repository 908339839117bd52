"""A matrix product for which XLA compares all kernels that it knows, with little padding of buffers."""

import jax.numpy as jnp
import numpy as np

numbers = np.arange(64, dtype=np.float32).reshape(8, 8)
product = np.asarray(jnp.asarray(numbers) @ jnp.asarray(numbers).T)
assert (product == numbers @ numbers.T).all(), product
print("passed")
