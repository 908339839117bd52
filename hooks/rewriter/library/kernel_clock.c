/* The clocks of each wave, in a channel.
 *
 * Macros: RECORDS, how many readings there is room for; a wave has two. */

struct reading {
    uint64_t cycles;
    uint64_t ticks;
    uint32_t workgroup[3];
    uint32_t wave;
    uint32_t is_end;
    uint32_t reserved;
};

FLIPWAVE_CHANNEL(readings, struct reading, RECORDS);

/* Meant to run on a single lane, where a kernel begins and where it ends. */
void read_clocks(uint32_t is_end, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    struct reading reading = {
        __builtin_readcyclecounter(), __builtin_readsteadycounter(), {x, y, z}, wave, is_end, 0};
    flipwave_append(&readings, reading);
}
