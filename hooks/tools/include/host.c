/* The main program of a tool's host side: answers the requests of Flipwave. Linked with the tool's file.
 *
 * A request is its number, the length of its content, and the content. An answer is a status, the length of
 * its content, and the content. Numbers are little endian; texts are their length, their bytes, and a zero
 * byte. `hooks/tools/src/host/` has the other side. */

#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

uint32_t flipwave_wave_size = 64;

/* The functions of the tool or fault model; NULL for those that it does not define. */
extern void (*const flipwave_entry_instrument)(const flipwave_inst *);
extern bool (*const flipwave_entry_on_dispatch)(const flipwave_dispatch *);
extern void (*const flipwave_entry_finish)(const flipwave_dispatch *);
extern uint32_t (*const flipwave_entry_fault_word)(uint32_t, flipwave_fault);
extern double (*const flipwave_entry_fault_number)(double, flipwave_fault);

enum { FLIPWAVE_DONE, FLIPWAVE_FAILED, FLIPWAVE_CRASHED };
enum {
    FLIPWAVE_DESCRIBE = 1,
    FLIPWAVE_LAYOUT,
    FLIPWAVE_INSTRUMENT,
    FLIPWAVE_DISPATCH,
    FLIPWAVE_FINISH,
    FLIPWAVE_FAULT_FUNCTIONS,
    FLIPWAVE_CORRUPT,
};
enum {
    FLIPWAVE_CALL = 1, FLIPWAVE_MASK, FLIPWAVE_ARGUMENT, FLIPWAVE_RESULT, FLIPWAVE_ADD_SHOWN, FLIPWAVE_ADD_SITE,
};
enum {
    FLIPWAVE_ARG_OPERAND, FLIPWAVE_ARG_VGPR, FLIPWAVE_ARG_AGPR, FLIPWAVE_ARG_SGPR, FLIPWAVE_ARG_VCC,
    FLIPWAVE_ARG_EXEC, FLIPWAVE_ARG_ADDRESS, FLIPWAVE_ARG_NUMBER, FLIPWAVE_ARG_LANE_NUMBER,
    FLIPWAVE_ARG_PC, FLIPWAVE_ARG_WORKGROUP, FLIPWAVE_ARG_WAVE,
    FLIPWAVE_ARG_KERNARG, FLIPWAVE_ARG_VARIABLE, FLIPWAVE_ARG_ROW,
    FLIPWAVE_ARG_EXEC_REGISTER, FLIPWAVE_ARG_REACHING_LANES,
};

extern struct flipwave_output *__start_flipwave_outputs[] __attribute__((weak));
extern struct flipwave_output *__stop_flipwave_outputs[] __attribute__((weak));
extern const char *__start_flipwave_parameters[] __attribute__((weak));
extern const char *__stop_flipwave_parameters[] __attribute__((weak));
extern char __executable_start, etext;

/* Where answers are written; standard output of the tool is standard error. */
static int flipwave_output_file = 1;

/* The answer. */
static char *flipwave_answer;
static size_t flipwave_answered, flipwave_capacity;

/* The rest of the request. */
static char *flipwave_rest;

/* The instruction of the current call of flipwave_instrument. */
static const flipwave_inst *flipwave_current;
/* A call was inserted at the current instruction. */
static bool flipwave_has_call;

static void flipwave_write(const void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(flipwave_output_file, bytes, size);
        if (written <= 0)
            _exit(3);
        bytes = (const char *)bytes + written;
        size -= (size_t)written;
    }
}

static void flipwave_send(uint32_t status)
{
    uint64_t size = flipwave_answered;
    flipwave_write(&status, 4);
    flipwave_write(&size, 8);
    flipwave_write(flipwave_answer, flipwave_answered);
    flipwave_answered = 0;
}

static void flipwave_put(const void *bytes, size_t size)
{
    if (flipwave_capacity - flipwave_answered < size) {
        flipwave_capacity = 2 * flipwave_capacity + size;
        flipwave_answer = realloc(flipwave_answer, flipwave_capacity);
        if (!flipwave_answer)
            _exit(4);
    }
    memcpy(flipwave_answer + flipwave_answered, bytes, size);
    flipwave_answered += size;
}

static void flipwave_put_32(uint32_t number) { flipwave_put(&number, 4); }
static void flipwave_put_64(uint64_t number) { flipwave_put(&number, 8); }

static void flipwave_put_text(const char *text)
{
    size_t size = text ? strlen(text) : 0;
    flipwave_put_32((uint32_t)size);
    if (size > 0)
        flipwave_put(text, size);
}

static uint32_t flipwave_get_32(void)
{
    uint32_t number;
    memcpy(&number, flipwave_rest, 4);
    flipwave_rest += 4;
    return number;
}

static uint64_t flipwave_get_64(void)
{
    uint64_t number;
    memcpy(&number, flipwave_rest, 8);
    flipwave_rest += 8;
    return number;
}

static const char *flipwave_get_text(void)
{
    uint32_t size = flipwave_get_32();
    const char *text = flipwave_rest;
    flipwave_rest += size + 1;
    return text;
}

_Noreturn void flipwave_fail_(const char *message, uint32_t line)
{
    flipwave_answered = 0;
    flipwave_put_32(line);
    flipwave_put_text(message);
    flipwave_send(FLIPWAVE_FAILED);
    _exit(0);
}

static bool flipwave_is_code(uint64_t address)
{
    return (char *)address >= &__executable_start && (char *)address < &etext;
}

/* Reports a signal with the interrupted address, and the return addresses of the active functions. */
static void flipwave_crashed(int number, siginfo_t *info, void *context)
{
    /* REG_RIP, which is declared only for GNU extensions. */
    enum { INSTRUCTION_POINTER = 16 };
    (void)info;
    void *frames[64];
    int count = backtrace(frames, 64);
    uint64_t numbers[66] = {0}, found = 1;
    numbers[0] = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[INSTRUCTION_POINTER];
    for (int at = 0; at < count; at++)
        if (flipwave_is_code((uint64_t)frames[at]))
            numbers[found++] = (uint64_t)frames[at];
    uint32_t status = FLIPWAVE_CRASHED, current = flipwave_current ? flipwave_current->index : ~0u;
    uint64_t size = 8 + 8 * found;
    flipwave_write(&status, 4);
    flipwave_write(&size, 8);
    flipwave_write(&number, 4);
    flipwave_write(&current, 4);
    flipwave_write(numbers, 8 * found);
    _exit(0);
}

static void flipwave_limit(void)
{
    static char stack[1 << 16];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_sigaction = flipwave_crashed,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGALRM};
    for (size_t at = 0; at < sizeof(signals) / sizeof(int); at++)
        sigaction(signals[at], &action, NULL);
    struct rlimit memory = {(rlim_t)FLIPWAVE_MEMORY, (rlim_t)FLIPWAVE_MEMORY};
    setrlimit(RLIMIT_AS, &memory);
    /* Loads what `backtrace` needs, which must not happen in a signal handler. */
    void *frame;
    backtrace(&frame, 1);
}

/* ---- Functions for tools ---- */

static uint32_t flipwave_number_of(const struct flipwave_output *output)
{
    struct flipwave_output **each = __start_flipwave_outputs;
    while (*each != output)
        each++;
    return (uint32_t)(each - __start_flipwave_outputs);
}

void flipwave_insert_call_at(const flipwave_inst *inst, const char *hook, enum flipwave_when when,
                             uint32_t line)
{
    if (inst != flipwave_current || !inst)
        flipwave_fail_("calls can be inserted only at the instruction that flipwave_instrument was called for",
                       line);
    flipwave_has_call = true;
    flipwave_put_32(FLIPWAVE_CALL);
    flipwave_put_32(inst->index);
    flipwave_put_text(hook);
    flipwave_put_32(when);
    flipwave_put_32(line);
}

static void flipwave_put_part(uint32_t part, uint32_t kind)
{
    if (!flipwave_has_call)
        flipwave_fail_("arguments, results and lanes belong to a call; begin it with flipwave_insert_call", 0);
    flipwave_put_32(part);
    flipwave_put_32(kind);
}

static void flipwave_argument(uint32_t kind, uint64_t first, uint64_t second)
{
    flipwave_put_part(FLIPWAVE_ARGUMENT, kind);
    flipwave_put_64(first);
    flipwave_put_64(second);
}

static void flipwave_result(uint32_t kind, uint64_t first, uint64_t second)
{
    flipwave_put_part(FLIPWAVE_RESULT, kind);
    flipwave_put_64(first);
    flipwave_put_64(second);
}

void flipwave_one_lane(void) { flipwave_put_part(FLIPWAVE_MASK, 1); }
void flipwave_all_lanes(void) { flipwave_put_part(FLIPWAVE_MASK, 2); }
void flipwave_arg_operand(uint32_t index) { flipwave_argument(FLIPWAVE_ARG_OPERAND, index, 0); }
void flipwave_arg_vgpr(uint32_t first, uint32_t words) { flipwave_argument(FLIPWAVE_ARG_VGPR, first, words); }
void flipwave_arg_agpr(uint32_t first, uint32_t words) { flipwave_argument(FLIPWAVE_ARG_AGPR, first, words); }
void flipwave_arg_sgpr(uint32_t first, uint32_t words) { flipwave_argument(FLIPWAVE_ARG_SGPR, first, words); }
void flipwave_arg_vcc(void) { flipwave_argument(FLIPWAVE_ARG_VCC, 0, 0); }
void flipwave_arg_exec(void) { flipwave_argument(FLIPWAVE_ARG_EXEC, 0, 0); }
void flipwave_arg_reaching_lanes(void) { flipwave_argument(FLIPWAVE_ARG_REACHING_LANES, 0, 0); }
void flipwave_arg_address(void) { flipwave_argument(FLIPWAVE_ARG_ADDRESS, 0, 0); }
void flipwave_arg_number(uint64_t value) { flipwave_argument(FLIPWAVE_ARG_NUMBER, value, 0); }
void flipwave_arg_lane_number(uint64_t value) { flipwave_argument(FLIPWAVE_ARG_LANE_NUMBER, value, 0); }
void flipwave_arg_pc(void) { flipwave_argument(FLIPWAVE_ARG_PC, 0, 0); }
void flipwave_arg_opcode_id(void) { flipwave_arg_number(flipwave_current ? flipwave_current->opcode_id : 0); }
void flipwave_arg_workgroup(uint32_t dimension) { flipwave_argument(FLIPWAVE_ARG_WORKGROUP, dimension, 0); }
void flipwave_arg_wave(void) { flipwave_argument(FLIPWAVE_ARG_WAVE, 0, 0); }
void flipwave_arg_kernel_arguments(void) { flipwave_argument(FLIPWAVE_ARG_KERNARG, 0, 0); }

void flipwave_arg_variable(const char *name, uint64_t offset)
{
    flipwave_argument(FLIPWAVE_ARG_VARIABLE, offset, 0);
    flipwave_put_text(name);
}

void flipwave_arg_row_(void *table, uint32_t row, uint64_t bytes)
{
    flipwave_argument(FLIPWAVE_ARG_ROW, row, row * bytes);
    flipwave_put_32(flipwave_number_of(table));
}

void flipwave_arg_row_offset_(void *table, uint32_t row, uint64_t bytes)
{
    flipwave_argument(FLIPWAVE_ARG_ROW, row, 0);
    flipwave_put_32(flipwave_number_of(table));
    flipwave_arg_lane_number(row * bytes);
}

void flipwave_result_operand(uint32_t index) { flipwave_result(FLIPWAVE_ARG_OPERAND, index, 0); }
void flipwave_result_vgpr(uint32_t first, uint32_t words) { flipwave_result(FLIPWAVE_ARG_VGPR, first, words); }
void flipwave_result_sgpr(uint32_t first, uint32_t words) { flipwave_result(FLIPWAVE_ARG_SGPR, first, words); }

void flipwave_result_exec(void) { flipwave_result(FLIPWAVE_ARG_EXEC_REGISTER, 0, 0); }
void flipwave_result_vcc(void) { flipwave_result(FLIPWAVE_ARG_VCC, 0, 0); }

uint32_t flipwave_new_row_(void *table)
{
    struct flipwave_output *output = table;
    if (output->kind != FLIPWAVE_KIND_TABLE && output->kind != FLIPWAVE_KIND_HISTOGRAM)
        flipwave_fail_("flipwave_new_row needs a FLIPWAVE_TABLE or FLIPWAVE_HISTOGRAM", 0);
    return output->used++;
}

static void flipwave_put_keys(const struct flipwave_output *output, const char *const *keys, size_t count,
                              uint32_t line)
{
    if (count != output->key_count) {
        char message[256];
        snprintf(message, sizeof(message), "`%s` has %u key columns, but %zu keys are given", output->name,
                 output->key_count, count);
        flipwave_fail_(message, line);
    }
    flipwave_put_32((uint32_t)count);
    for (size_t at = 0; at < count; at++)
        flipwave_put_text(keys[at]);
}

void flipwave_show_(void *table, const flipwave_inst *inst, uint32_t row, const char *const *keys,
                    size_t count, uint32_t line)
{
    struct flipwave_output *output = table;
    if (!inst)
        flipwave_fail_("flipwave_show needs an instruction", line);
    if (row >= output->used)
        flipwave_fail_("flipwave_show needs a row that flipwave_new_row returned for this code object", line);
    flipwave_put_32(FLIPWAVE_ADD_SHOWN);
    flipwave_put_32(flipwave_number_of(output));
    flipwave_put_32(inst->index);
    flipwave_put_32(row);
    flipwave_put_keys(output, keys, count, line);
}

flipwave_site flipwave_new_site_(void *stream, const flipwave_inst *inst, const char *const *keys,
                                 size_t count, uint32_t line)
{
    struct flipwave_output *output = stream;
    if (!inst)
        flipwave_fail_("flipwave_new_site needs an instruction", line);
    flipwave_put_32(FLIPWAVE_ADD_SITE);
    flipwave_put_32(flipwave_number_of(output));
    flipwave_put_32(inst->index);
    flipwave_put_keys(output, keys, count, line);
    return output->used++;
}

static char *flipwave_next_text(void)
{
    static char texts[64][24];
    static uint32_t next;
    return texts[next++ % 64];
}

const char *flipwave_decimal(uint64_t number)
{
    char *text = flipwave_next_text();
    snprintf(text, 24, "%" PRIu64, number);
    return text;
}

const char *flipwave_hexadecimal(uint64_t number)
{
    char *text = flipwave_next_text();
    snprintf(text, 24, "0x%" PRIx64, number);
    return text;
}

uint64_t flipwave_number(const char *text)
{
    return text ? strtoull(text, NULL, 0) : 0;
}

bool flipwave_matches(const char *text, const char *pattern)
{
    /* Where to continue after a `*` if the rest does not match. */
    const char *again = NULL, *behind = NULL;
    while (*text) {
        if (*pattern == '*') {
            behind = ++pattern;
            again = text;
        } else if (*pattern == *text || *pattern == '?') {
            pattern++;
            text++;
        } else if (behind) {
            pattern = behind;
            text = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

uint64_t flipwave_length_(const void *output)
{
    return ((const struct flipwave_output *)output)->length;
}

const char *flipwave_key_(const void *table, uint64_t row, uint32_t column)
{
    const struct flipwave_output *output = table;
    if (!output->row_keys || row >= output->length || column >= output->key_count)
        flipwave_fail_("flipwave_key: the table has no such row or column", 0);
    return output->row_keys[row * output->key_count + column];
}

void flipwave_emit_(void *rows, const void *row, size_t size)
{
    const struct flipwave_output *output = rows;
    flipwave_put_32(flipwave_number_of(output));
    flipwave_put(row, size);
    for (uint32_t at = 0; at < output->text_count; at++) {
        const char *text;
        memcpy(&text, (const char *)row + output->texts[at], sizeof(text));
        flipwave_put_text(text);
    }
}

/* ---- Requests ---- */

static void flipwave_describe(void)
{
    flipwave_put_32((uint32_t)(__stop_flipwave_outputs - __start_flipwave_outputs));
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++) {
        const struct flipwave_output *output = *each;
        flipwave_put_text(output->name);
        flipwave_put_text(output->type);
        flipwave_put_32(output->kind);
        flipwave_put_32(output->size);
        flipwave_put_32(output->key_count);
        for (uint32_t at = 0; at < output->key_count; at++)
            flipwave_put_text(output->keys[at]);
    }
    flipwave_put_32((uint32_t)(__stop_flipwave_parameters - __start_flipwave_parameters));
    for (const char **each = __start_flipwave_parameters; each != __stop_flipwave_parameters; each++)
        flipwave_put_text(*each);
}

static void flipwave_lay_out(void)
{
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++) {
        (*each)->text_count = flipwave_get_32();
        for (uint32_t at = 0; at < (*each)->text_count; at++)
            (*each)->texts[at] = flipwave_get_32();
    }
}

static void flipwave_instrument_all(void)
{
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++)
        (*each)->used = 0;
    flipwave_wave_size = flipwave_get_32();
    const char *target = flipwave_get_text();
    uint32_t count = flipwave_get_32();
    flipwave_operand operands[64];
    for (uint32_t number = 0; number < count; number++) {
        flipwave_inst inst = {.target = target, .operands = operands};
        inst.pc = flipwave_get_64();
        inst.index = flipwave_get_32();
        inst.block = flipwave_get_32();
        inst.opcode = flipwave_get_text();
        inst.opcode_id = flipwave_get_32();
        inst.text = flipwave_get_text();
        inst.size = flipwave_get_32();
        inst.function = flipwave_get_text();
        inst.file = flipwave_get_text();
        inst.line = flipwave_get_32();
        inst.class = flipwave_get_32();
        inst.data_type = flipwave_get_32();
        inst.space = flipwave_get_32();
        inst.access_bytes = flipwave_get_32();
        inst.elements = flipwave_get_32();
        inst.distance = (int64_t)flipwave_get_64();
        uint32_t flags = flipwave_get_32();
        bool *all[] = {
            &inst.is_load, &inst.is_store, &inst.is_atomic, &inst.has_uniform_address, &inst.is_branch,
            &inst.is_conditional_branch, &inst.is_call, &inst.is_return, &inst.is_barrier, &inst.is_end,
            &inst.writes_exec, &inst.in_kernel, &inst.is_kernel_entry, &inst.is_block_entry,
            &inst.is_block_exit, &inst.is_emulated,
        };
        for (uint32_t bit = 0; bit < sizeof(all) / sizeof(*all); bit++)
            *all[bit] = flags >> bit & 1;
        inst.operand_count = flipwave_get_32();
        for (uint32_t at = 0; at < inst.operand_count; at++) {
            flipwave_operand operand = {0};
            operand.kind = flipwave_get_32();
            operand.is_destination = flipwave_get_32();
            operand.first = flipwave_get_32();
            operand.words = flipwave_get_32();
            operand.bits = flipwave_get_64();
            operands[at] = operand;
        }
        flipwave_current = &inst;
        flipwave_has_call = false;
        flipwave_entry_instrument(&inst);
        flipwave_current = NULL;
    }
    flipwave_put_32(0);
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++)
        flipwave_put_32((*each)->used);
}

static flipwave_dispatch flipwave_get_dispatch(void)
{
    flipwave_dispatch dispatch = {.number = flipwave_get_32()};
    dispatch.kernel = flipwave_get_text();
    for (uint32_t at = 0; at < 3; at++)
        dispatch.grid[at] = flipwave_get_32();
    for (uint32_t at = 0; at < 3; at++)
        dispatch.workgroup[at] = flipwave_get_32();
    dispatch.launch = flipwave_get_32();
    dispatch.is_instrumented = flipwave_get_32();
    return dispatch;
}

static void *flipwave_get_array(uint64_t size)
{
    void *array = malloc(size + 1);
    if (!array)
        flipwave_fail_("the records of the dispatch do not fit into the tool's memory", 0);
    memcpy(array, flipwave_rest, size);
    flipwave_rest += size;
    return array;
}

static void flipwave_finish_dispatch(void)
{
    flipwave_dispatch dispatch = flipwave_get_dispatch();
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++) {
        struct flipwave_output *output = *each;
        output->length = flipwave_get_64();
        *output->data = flipwave_get_array(output->length * output->size);
        if (output->kind == FLIPWAVE_KIND_MAP)
            *output->map_keys = flipwave_get_array(output->length * sizeof(uint64_t));
        if (output->kind != FLIPWAVE_KIND_TABLE && output->kind != FLIPWAVE_KIND_HISTOGRAM)
            continue;
        uint64_t keys = output->length * output->key_count;
        output->row_keys = malloc(keys * sizeof(char *) + 1);
        for (uint64_t at = 0; at < keys; at++)
            output->row_keys[at] = flipwave_get_text();
    }
    if (flipwave_entry_finish)
        flipwave_entry_finish(&dispatch);
    for (struct flipwave_output **each = __start_flipwave_outputs; each != __stop_flipwave_outputs; each++) {
        struct flipwave_output *output = *each;
        free(*output->data);
        if (output->map_keys)
            free(*output->map_keys);
        free(output->row_keys);
        *output->data = NULL;
        output->row_keys = NULL;
        output->length = 0;
    }
}

static void flipwave_choose(void)
{
    flipwave_dispatch dispatch = flipwave_get_dispatch();
    flipwave_put_32(!flipwave_entry_on_dispatch || flipwave_entry_on_dispatch(&dispatch));
}

/* Answers with the functions of a fault model: bit 0 for words, bit 1 for numbers. */
static void flipwave_fault_functions(void)
{
    flipwave_put_32((flipwave_entry_fault_word != 0) | (flipwave_entry_fault_number != 0) << 1);
}

static void flipwave_corrupt(void)
{
    uint64_t value = flipwave_get_64();
    flipwave_fault fault = {.bits = flipwave_get_32()};
    fault.lane = flipwave_get_32();
    fault.random = flipwave_get_64();
    if (flipwave_entry_fault_word) {
        flipwave_put_64(flipwave_entry_fault_word((uint32_t)value, fault));
        return;
    }
    double number;
    memcpy(&number, &value, sizeof(number));
    number = flipwave_entry_fault_number(number, fault);
    flipwave_put(&number, sizeof(number));
}

static bool flipwave_read(void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = read(0, bytes, size);
        if (count <= 0)
            return false;
        bytes = (char *)bytes + count;
        size -= (size_t)count;
    }
    return true;
}

int main(void)
{
    flipwave_output_file = dup(1);
    dup2(2, 1);
    flipwave_limit();
    uint32_t request;
    uint64_t size;
    while (flipwave_read(&request, 4) && flipwave_read(&size, 8)) {
        char *content = malloc(size + 1);
        if (!content || !flipwave_read(content, size))
            return 4;
        flipwave_rest = content;
        /* Ends endless loops; Flipwave also kills a process that ignores this. */
        alarm(FLIPWAVE_SECONDS);
        switch (request) {
        case FLIPWAVE_DESCRIBE: flipwave_describe(); break;
        case FLIPWAVE_LAYOUT: flipwave_lay_out(); break;
        case FLIPWAVE_INSTRUMENT: flipwave_instrument_all(); break;
        case FLIPWAVE_DISPATCH: flipwave_choose(); break;
        case FLIPWAVE_FINISH: flipwave_finish_dispatch(); break;
        case FLIPWAVE_FAULT_FUNCTIONS: flipwave_fault_functions(); break;
        case FLIPWAVE_CORRUPT: flipwave_corrupt(); break;
        }
        alarm(0);
        fflush(stdout);
        flipwave_send(FLIPWAVE_DONE);
        free(content);
    }
    return 0;
}
