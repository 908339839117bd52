"""Trains a small network with JAX to approximate a sine, and prints the loss of each step.

    flipwave exec --gpu gfx90a -- jax-python train.py [STEPS]

With --numpy, the same training in NumPy, with gradients written by hand: losses agree to four digits.
"""

import sys

import numpy as np

POINTS, HIDDEN, RATE = 256, 32, 0.05


def start() -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Parameters before the first step, inputs and targets."""
    random = np.random.RandomState(1)
    parameters = (
        random.normal(0, 1.5, (1, HIDDEN)),
        random.uniform(-2, 2, HIDDEN),
        random.normal(0, 0.3, (HIDDEN, HIDDEN)),
        np.zeros(HIDDEN),
        random.normal(0, 0.3, (HIDDEN, 1)),
    )
    inputs = np.linspace(-1, 1, POINTS)[:, None]
    parameters = tuple(values.astype(np.float32) for values in parameters)
    return parameters, inputs.astype(np.float32), np.sin(4 * inputs).astype(np.float32)


def with_jax(steps: int) -> list[float]:
    """Losses of all steps on the GPU."""
    import jax
    import jax.numpy as jnp

    def loss(parameters, inputs, targets):
        first, first_bias, second, second_bias, last = parameters
        hidden = jnp.tanh(inputs @ first + first_bias)
        hidden = jnp.tanh(hidden @ second + second_bias)
        return jnp.mean((hidden @ last - targets) ** 2)

    @jax.jit
    def step(parameters, inputs, targets):
        value, gradients = jax.value_and_grad(loss)(parameters, inputs, targets)
        return jax.tree.map(lambda old, gradient: old - RATE * gradient, parameters, gradients), value

    parameters, inputs, targets = jax.device_put(start())
    losses = []
    for _ in range(steps):
        parameters, value = step(parameters, inputs, targets)
        losses.append(float(value))
    return losses


def with_numpy(steps: int) -> list[float]:
    """Losses of all steps on the host."""
    parameters, inputs, targets = start()
    losses = []
    for _ in range(steps):
        first, first_bias, second, second_bias, last = parameters
        hidden = np.tanh(inputs @ first + first_bias)
        deeper = np.tanh(hidden @ second + second_bias)
        errors = deeper @ last - targets
        losses.append(float(np.mean(errors**2)))
        errors = 2 * errors / len(errors)
        to_deeper = errors @ last.T * (1 - deeper**2)
        to_hidden = to_deeper @ second.T * (1 - hidden**2)
        gradients = (
            inputs.T @ to_hidden,
            to_hidden.sum(axis=0),
            hidden.T @ to_deeper,
            to_deeper.sum(axis=0),
            deeper.T @ errors,
        )
        parameters = tuple(old - np.float32(RATE) * new for old, new in zip(parameters, gradients))
    return losses


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--numpy"]
    steps = int(arguments[0]) if arguments else 20
    train = with_numpy if "--numpy" in sys.argv else with_jax
    for step, value in enumerate(train(steps)):
        print(f"step {step} loss {value:.7f}")


if __name__ == "__main__":
    main()
