// Calls through pointers next to kernels that index registers. A call may reach `sum`, `product` and
// `chosen`, but never a kernel.
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable

typedef int (*operation)(int, int);

__attribute__((noinline)) static int sum(int a, int b) { return a * 3 + b; }

__attribute__((noinline)) static int product(int a, int b) { return a * b + 7; }

// Indexes registers of its caller.
__attribute__((noinline)) static int chosen(int a, int b) {
    int8 values = (int8)(a, b, a + b, a - b, a ^ b, a & b, a | b, ~a);
    return values[__builtin_amdgcn_readfirstlane(b) & 7];
}

__constant const operation operations[] = {sum, product, chosen};

kernel void call(global const int *choices, int count, global int *values) {
    int item = get_global_id(0);
    int value = values[item];
    for (int i = 0; i < count; ++i)
        value = operations[choices[i]](value, item + i) ^ value;
    values[item] = value;
}

// The index is uniform and known to be less than 16.
kernel void rotate(global const int16 *input, int at, global int16 *output) {
    int item = get_global_id(0);
    int16 values = input[item], result = values;
    for (int i = 0; i < 16; ++i)
        result[(at + i) & 15] = values[(i * at) & 15] + i;
    output[item] = result;
}

// The index differs between lanes.
kernel void pick(global const int16 *input, global const int *places, global int *output) {
    int item = get_global_id(0);
    output[item] = input[item][places[item] & 15];
}
