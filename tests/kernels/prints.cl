// A kernel that prints if a value is wrong.
kernel void prints(global const int *values, global int *doubled) {
    int i = get_local_id(0);
    if (values[i] == 37)
        printf("%d is not a value\n", values[i]);
    doubled[i] = 2 * values[i];
}
