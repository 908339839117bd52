/* Waves and lanes that a fault strikes. */

/* Lanes of the wave that have a thread. */
static uint64_t existing(void)
{
    uint32_t threads = __nvvm_read_ptx_sreg_ntid_x() * __nvvm_read_ptx_sreg_ntid_y()
                     * __nvvm_read_ptx_sreg_ntid_z();
    uint32_t rest = threads - FLIPWAVE_LANES * flipwave_wave();
    return rest < FLIPWAVE_LANES ? (1u << rest) - 1 : ~0u;
}

/* Where the states of waves are: memory of the host, which outlives a fault of the device, or 0 for `waves`. */
struct wave *record;

/* The state of the wave with a number. */
static struct wave *state_of(uint32_t number)
{
    struct wave *all = record;
    return (all ? all : waves) + number;
}

/* The state of the wave if this execution is struck, and 0 otherwise. Counts executions. */
static struct wave *struck_wave(void)
{
    uint32_t number;
    if (!is_struck_wave(flipwave_workgroup_x(), flipwave_workgroup_y(), flipwave_workgroup_z(),
                        flipwave_wave(), &number))
        return 0;
    struct wave *state = state_of(number);
    return is_struck_execution(state) ? state : 0;
}

/* The struck lanes, for an instruction that runs in `executing`. */
static uint64_t lanes_of_wave(uint64_t executing)
{
    uint64_t lanes = lanes_struck(executing);
    return lanes == ~0u ? existing() : lanes;
}

/* The lowest lane that runs the hook. */
static uint32_t leader(void)
{
    return __builtin_ctz(flipwave_active());
}
