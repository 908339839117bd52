// Control flow that differs from lane to lane.

// Steps of the Collatz sequence down to 1: a loop whose length differs between lanes.
kernel void collatz(global const uint *start, global uint *steps) {
    size_t i = get_global_id(0);
    uint count = 0;
    for (ulong value = start[i]; value != 1; ++count)
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    steps[i] = count;
}

// A stack machine: all lanes run the same program, on paths that depend on the stack.
enum { PUSH, ADD, SUBTRACT, MULTIPLY, DUPLICATE, SWAP, SKIP_IF_ODD, SKIP_IF_NEGATIVE, NEGATE, INPUT };

kernel void interpret(global const int *program, int length, global const int *input,
                      global int *result) {
    size_t i = get_global_id(0);
    int stack[8] = {0};
    int top = 0;
    for (int at = 0; at < length; ++at) {
        int a = stack[top], b = stack[(top + 7) % 8];
        switch (program[at]) {
        case PUSH: top = (top + 1) % 8; stack[top] = program[++at]; break;
        case ADD: top = (top + 7) % 8; stack[top] = a + b; break;
        case SUBTRACT: top = (top + 7) % 8; stack[top] = b - a; break;
        case MULTIPLY: top = (top + 7) % 8; stack[top] = a * b; break;
        case DUPLICATE: top = (top + 1) % 8; stack[top] = a; break;
        case SWAP: stack[top] = b; stack[(top + 7) % 8] = a; break;
        case SKIP_IF_ODD: at += a & 1; break;
        case SKIP_IF_NEGATIVE: at += a < 0; break;
        case NEGATE: stack[top] = -a; break;
        case INPUT: top = (top + 1) % 8; stack[top] = input[i]; break;
        }
    }
    result[i] = stack[top];
}

// The smallest factor and the number of smaller primes: nested loops with early exits.
kernel void factors(global const uint *numbers, global uint2 *results) {
    size_t i = get_global_id(0);
    uint number = numbers[i], least = number, primes = 0;
    for (uint factor = 2; factor * factor <= number; ++factor) {
        if (number % factor)
            continue;
        least = factor;
        break;
    }
    for (uint candidate = 2; candidate < number % 16; ++candidate) {
        bool prime = true;
        for (uint factor = 2; prime && factor < candidate; ++factor)
            if (candidate % factor == 0)
                prime = false;
        primes += prime;
    }
    results[i] = (uint2)(least, primes);
}

// Called functions, one of which accesses memory of the caller.
__attribute__((noinline)) static uint mix(uint value, uint key) {
    value ^= key * 0x9e3779b9u;
    return value << 7 | value >> 25;
}

__attribute__((noinline)) static ulong weigh(const uint *words, int count, uint key) {
    ulong sum = 0;
    for (int at = 0; at < count; ++at)
        sum += (ulong)mix(words[at], key) * (at + 1);
    return sum;
}

kernel void calls(global const uint *seeds, global ulong *sums) {
    size_t i = get_global_id(0);
    uint words[16];
    for (uint at = 0; at < 16; ++at)
        words[at * 7 % 16] = mix(seeds[i], at);
    ulong sum = weigh(words, 16, seeds[i]);
    // Only some lanes call again.
    if (seeds[i] % 3 == 0)
        sum ^= weigh(words + seeds[i] % 8, 8, (uint)sum);
    sums[i] = sum;
}
