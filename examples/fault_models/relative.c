/* Changes a floating-point number by a relative error of at least 2^-10, up or down. Each doubling of the
 * error is half as likely, like the power laws measured in RTL simulation. */

double flipwave_fault_number(double value, flipwave_fault fault)
{
    double error = 0x1p-10;
    uint64_t coins = fault.random;
    for (; coins & 1; coins >>= 1)
        error *= 2;
    return coins & 2 ? value * (1 + error) : value * (1 - error);
}
