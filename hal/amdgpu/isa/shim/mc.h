// C interface to LLVM's MC layer for AMDGPU. A session must not be used by two threads at a time.

#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct FlipwaveSession;

enum FlipwaveOperandKind : uint8_t {
  FLIPWAVE_REGISTER = 0,
  FLIPWAVE_IMMEDIATE = 1,
  FLIPWAVE_OTHER = 2,
};

// An operand of an MC instruction.
struct FlipwaveOperand {
  int64_t value; // register number or immediate
  FlipwaveOperandKind kind;
  uint8_t definition; // 1 if written
  uint8_t tied;       // 1 if read and tied to a definition
  uint8_t type;       // LLVM's AMDGPU::OperandType; 0 for operands without description
};

enum FlipwaveFlag : uint32_t {
  FLIPWAVE_LOADS = 1 << 0,
  FLIPWAVE_STORES = 1 << 1,
  FLIPWAVE_BRANCH = 1 << 2,
  FLIPWAVE_CONDITIONAL = 1 << 3,
  FLIPWAVE_CALL = 1 << 4,
  FLIPWAVE_TERMINATOR = 1 << 5,
  FLIPWAVE_BARRIER = 1 << 6,
  FLIPWAVE_SIDE_EFFECTS = 1 << 7,
};

// A decoded instruction. `operands` and `text` are valid until the session's next call;
// `name` and the implicit register lists are in LLVM's static tables.
struct FlipwaveDecoded {
  const char *name;
  const char *text;
  const FlipwaveOperand *operands;
  const uint16_t *implicit_definitions;
  const uint16_t *implicit_uses;
  size_t text_length;
  size_t operand_count;
  size_t implicit_definition_count;
  size_t implicit_use_count;
  uint64_t format; // TSFlags
  uint32_t size;   // bytes
  uint32_t flags;  // FlipwaveFlag
};

// The result of assembling: `bytes` on success, otherwise `message` with line and column
// from 1 (0 if unknown). All pointers are valid until the session's next call.
struct FlipwaveAssembled {
  const uint8_t *bytes;
  size_t length;
  const char *message;
  size_t message_length;
  uint32_t line;
  uint32_t column;
};

// Opens a session. Returns null if LLVM has no AMDGPU target or does not support the processor. LLVM's
// AMDGPU target must have been initialized.
FlipwaveSession *flipwave_open(const char *processor, const char *features);
void flipwave_close(FlipwaveSession *session);

// Decodes the instruction at the start of `bytes`. Returns 1 and fills `decoded` on success, 0 otherwise.
int flipwave_decode(FlipwaveSession *session, const uint8_t *bytes, size_t length,
                    uint64_t address, FlipwaveDecoded *decoded);

// Assembles `text`, which need not end in a null byte. Returns 1 on success, 0 with a message otherwise.
// The caller must reject directives: some of them access the file system or run without bound.
int flipwave_assemble(FlipwaveSession *session, const char *text, size_t length,
                      FlipwaveAssembled *assembled);

// LLVM's registers: numbers are below the count, names are static.
uint32_t flipwave_register_count(const FlipwaveSession *session);
const char *flipwave_register_name(const FlipwaveSession *session, uint32_t number);

// A subtarget feature of LLVM. Both strings are static.
struct FlipwaveFeature {
  const char *name;
  const char *description;
  uint8_t enabled; // 1 if enabled by the session's processor or feature string
};

// LLVM's subtarget features: numbers are below the count.
uint32_t flipwave_feature_count(const FlipwaveSession *session);
FlipwaveFeature flipwave_feature(const FlipwaveSession *session, uint32_t number);
}
