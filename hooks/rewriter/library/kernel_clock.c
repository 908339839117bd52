/* Records the clocks of each wave in a channel.
 *
 * Macros: RECORDS, maximum number of readings; each wave has two. */

struct reading {
    uint64_t cycles;
    uint64_t ticks;
    uint32_t workgroup[3];
    uint32_t wave;
    uint32_t is_end;
    uint32_t reserved;
};

FLIPWAVE_CHANNEL(readings, struct reading, RECORDS);

/* Runs in a single lane at the start and at the end of a kernel. */
void read_clocks(uint32_t is_end, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    struct reading reading = {
        __builtin_readcyclecounter(), __builtin_readsteadycounter(), {x, y, z}, wave, is_end, 0};
    flipwave_append(&readings, reading);
}
