"""Trains a small language model that counts in words and writes it as a GGUF file for llama.cpp.

    python model.py MODEL.gguf [--steps 700]

The architecture is `llama`: byte tokens, RMS norms, rotary positions, grouped-query attention, SwiGLU. Training and
gradients use plain numpy and take a minute or two on one core; the same seed gives the same file on the same machine.
Needs numpy and gguf (both on PyPI).
"""

import argparse

import gguf
import numpy

BYTES = 256
FIRST_BYTE = 3  # after <unk>, <s> and </s>, which llama.cpp's tokenizer expects first
SPACE = FIRST_BYTE + BYTES  # a separate token in this tokenizer
VOCABULARY = SPACE + 1
WIDTH, LAYERS, HEADS, KEY_HEADS, HEAD = 128, 2, 2, 1, 64
INNER = 256
EPSILON = 1e-5
ROTARY_BASE = 10000.0
CONTEXT = 256


def text() -> bytes:
    """The numbers from zero to ninety-nine in words."""
    ones = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
    ones += "seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    names = ones + [ten + ("" if one == 0 else " " + ones[one]) for ten in tens for one in range(10)]
    return (", ".join(names) + ", ").encode()


def weights(random: numpy.random.Generator) -> dict[str, numpy.ndarray]:
    """Initial weights. Matrices are inputs x outputs here and transposed in GGUF."""

    def matrix(inputs: int, outputs: int) -> numpy.ndarray:
        return random.normal(0, inputs**-0.5, (inputs, outputs)).astype(numpy.float32)

    made = {"token_embd": random.normal(0, 0.5, (VOCABULARY, WIDTH)).astype(numpy.float32)}
    for layer in range(LAYERS):
        made |= {
            f"blk.{layer}.attn_norm": numpy.ones(WIDTH, numpy.float32),
            f"blk.{layer}.attn_q": matrix(WIDTH, HEADS * HEAD),
            f"blk.{layer}.attn_k": matrix(WIDTH, KEY_HEADS * HEAD),
            f"blk.{layer}.attn_v": matrix(WIDTH, KEY_HEADS * HEAD),
            f"blk.{layer}.attn_output": matrix(HEADS * HEAD, WIDTH),
            f"blk.{layer}.ffn_norm": numpy.ones(WIDTH, numpy.float32),
            f"blk.{layer}.ffn_gate": matrix(WIDTH, INNER),
            f"blk.{layer}.ffn_up": matrix(WIDTH, INNER),
            f"blk.{layer}.ffn_down": matrix(INNER, WIDTH),
        }
    return made | {"output_norm": numpy.ones(WIDTH, numpy.float32), "output": matrix(WIDTH, VOCABULARY)}


class Tape:
    """Parameters and gradients. Operations return a value and its backward function. Arrays are batch x time x width."""

    def __init__(self, parameters: dict[str, numpy.ndarray]):
        self.parameters = parameters
        self.gradients = {name: numpy.zeros_like(value) for name, value in parameters.items()}

    def linear(self, x, name):
        weight = self.parameters[name]

        def back(d):
            self.gradients[name] += x.reshape(-1, x.shape[-1]).T @ d.reshape(-1, d.shape[-1])
            return d @ weight.T

        return x @ weight, back

    def norm(self, x, name):
        scale = self.parameters[name]
        inverse = 1 / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        unit = x * inverse

        def back(d):
            self.gradients[name] += (d * unit).sum((0, 1))
            d = d * scale
            return inverse * (d - unit * (d * unit).mean(-1, keepdims=True))

        return unit * scale, back


def rotated(x, sign=1):
    """Rotary positions of pairs of neighbours (the `llama` order of pairs). x: batch, heads, time, HEAD."""
    angles = numpy.arange(x.shape[2])[:, None] * ROTARY_BASE ** (-numpy.arange(0, HEAD, 2) / HEAD)
    cos, sin = numpy.cos(angles).astype(x.dtype), sign * numpy.sin(angles).astype(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = numpy.empty_like(x)
    turned[..., 0::2], turned[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
    return turned


def heads(x, count):
    return x.reshape(*x.shape[:2], count, HEAD).swapaxes(1, 2)


def joined(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attention(q, k, v):
    """Causal attention; returns the result and a function from its gradient to those of q, k and v."""
    group = HEADS // KEY_HEADS
    q, k, v = rotated(heads(q, HEADS)), rotated(heads(k, KEY_HEADS)), heads(v, KEY_HEADS)
    keys, values = k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ keys.swapaxes(2, 3) * numpy.float32(HEAD**-0.5)
    scores += numpy.triu(numpy.full(scores.shape[2:], -1e9, numpy.float32), 1)
    p = numpy.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)

    def shared(d):
        return d.reshape(d.shape[0], KEY_HEADS, group, *d.shape[2:]).sum(2)

    def back(d):
        d = heads(d, HEADS)
        dv = shared(p.swapaxes(2, 3) @ d)
        dp = d @ values.swapaxes(2, 3)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * numpy.float32(HEAD**-0.5)
        dq = rotated(ds @ keys, -1)
        dk = rotated(shared(ds.swapaxes(2, 3) @ q), -1)
        return joined(dq), joined(dk), joined(dv)

    return joined(p @ values), back


def block(tape: Tape, x, name):
    """One layer; returns its result and its backward function."""
    normed, norm_back = tape.norm(x, f"{name}.attn_norm")
    (q, q_back), (k, k_back), (v, v_back) = (tape.linear(normed, f"{name}.attn_{part}") for part in "qkv")
    mixed, mixed_back = attention(q, k, v)
    out, out_back = tape.linear(mixed, f"{name}.attn_output")
    middle = x + out
    inner, inner_back = tape.norm(middle, f"{name}.ffn_norm")
    gate, gate_back = tape.linear(inner, f"{name}.ffn_gate")
    up, up_back = tape.linear(inner, f"{name}.ffn_up")
    sigmoid = 1 / (1 + numpy.exp(-gate))
    down, down_back = tape.linear(gate * sigmoid * up, f"{name}.ffn_down")

    def back(d):
        product = down_back(d)
        d_gate = product * up * sigmoid * (1 + gate * (1 - sigmoid))
        d = d + inner_back(gate_back(d_gate) + up_back(product * gate * sigmoid))
        dq, dk, dv = mixed_back(out_back(d))
        return d + norm_back(q_back(dq) + k_back(dk) + v_back(dv))

    return middle + down, back


def logits(tape: Tape, tokens):
    """Logits of the next token for each position, and a function that adds their gradient to the tape."""
    x = tape.parameters["token_embd"][tokens]
    backs = []
    for layer in range(LAYERS):
        x, back = block(tape, x, f"blk.{layer}")
        backs.append(back)
    normed, norm_back = tape.norm(x, "output_norm")
    out, out_back = tape.linear(normed, "output")

    def back(d):
        d = norm_back(out_back(d))
        for layer_back in reversed(backs):
            d = layer_back(d)
        numpy.add.at(tape.gradients["token_embd"], tokens, d)

    return out, back


def train(steps: int, seed: int = 1, batch: int = 16, length: int = 64) -> dict[str, numpy.ndarray]:
    """Trains with Adam on random parts of the text; the loss is the cross entropy of the next byte."""
    random = numpy.random.default_rng(seed)
    parameters = weights(random)
    first = {name: numpy.zeros_like(value) for name, value in parameters.items()}
    second = {name: numpy.zeros_like(value) for name, value in parameters.items()}
    codes = numpy.frombuffer(text() * 2, numpy.uint8).astype(numpy.int64)
    tokens = numpy.where(codes == ord(" "), SPACE, codes + FIRST_BYTE)
    for step in range(1, steps + 1):
        starts = random.integers(0, len(tokens) // 2, batch)
        cut = tokens[starts[:, None] + numpy.arange(length + 1)]
        tape = Tape(parameters)
        out, back = logits(tape, cut[:, :-1])
        p = numpy.exp(out - out.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        right = numpy.take_along_axis(p, cut[:, 1:, None], -1)
        if step % 100 == 0:
            print(f"step {step}: loss {-numpy.log(right + 1e-9).mean():.4f}", flush=True)
        numpy.put_along_axis(p, cut[:, 1:, None], right - 1, -1)
        back(p / numpy.float32(batch * length))
        rate = 3e-3 * min(1, step / 50) * 0.5 * (1 + numpy.cos(numpy.pi * step / steps))
        for name, gradient in tape.gradients.items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.01 * (gradient**2 - second[name])
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.99**step)
            parameters[name] -= (rate * mean / (numpy.sqrt(square) + 1e-8)).astype(numpy.float32)
    return parameters


def write(parameters: dict[str, numpy.ndarray], path: str) -> None:
    """Writes matrices as f16 and the scales of norms as f32."""
    file = gguf.GGUFWriter(path, "llama")
    file.add_name("counting")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KEY_HEADS)
    file.add_key_length(HEAD)
    file.add_value_length(HEAD)
    file.add_rope_dimension_count(HEAD)
    file.add_rope_freq_base(ROTARY_BASE)
    file.add_layer_norm_rms_eps(EPSILON)
    file.add_vocab_size(VOCABULARY)
    file.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    file.add_tokenizer_model("llama")
    file.add_token_list(["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(BYTES)] + ["\u2581"])
    file.add_token_scores([0.0] * VOCABULARY)
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * BYTES
    kinds.append(gguf.TokenType.NORMAL)
    file.add_token_types(kinds)
    file.add_add_bos_token(False)
    file.add_add_space_prefix(False)
    for name, value in parameters.items():
        if value.ndim == 1:
            file.add_tensor(f"{name}.weight", value)
        else:
            rows = value if name == "token_embd" else value.T
            file.add_tensor(f"{name}.weight", numpy.ascontiguousarray(rows).astype(numpy.float16))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model", help="the file to write")
    arguments.add_argument("--steps", type=int, default=700, help="training steps (default: 700)")
    given = arguments.parse_args()
    write(train(given.steps), given.model)


if __name__ == "__main__":
    main()
