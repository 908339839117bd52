#include "mc.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/bit.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCAsmInfoELF.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCExpr.h"
#include "llvm/MC/MCFixup.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrDesc.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCParser/AsmLexer.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSectionELF.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCSymbol.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace llvm;

namespace {

constexpr char TripleName[] = "amdgcn-amd-amdhsa";

// The first error message of an assembled text.
struct FirstError {
  std::string Message;
  uint32_t Line = 0;
  uint32_t Column = 0;
  bool Present = false;

  void set(std::string Text, uint32_t AtLine, uint32_t AtColumn) {
    if (Present)
      return;
    Present = true;
    Message = std::move(Text);
    Line = AtLine;
    Column = AtColumn;
  }

  void set(const SMDiagnostic &Diagnostic) {
    if (Diagnostic.getKind() != SourceMgr::DK_Error)
      return;
    int Line = Diagnostic.getLineNo();
    int Column = Diagnostic.getColumnNo();
    set(Diagnostic.getMessage().str(), Line > 0 ? Line : 0, Column >= 0 ? Column + 1 : 0);
  }
};

// Encodes instructions into one buffer and resolves branches to labels of the same text. An object
// streamer would produce an ELF file that had to be parsed again.
class ByteStreamer final : public MCStreamer {
public:
  ByteStreamer(MCContext &Context, const MCCodeEmitter &Emitter, SourceMgr &Sources,
               FirstError &Error)
      : MCStreamer(Context), Emitter(Emitter), Sources(Sources), Error(Error) {}

  SmallVector<char, 64> Bytes;

  // Discards the last text.
  void clear() {
    Bytes.clear();
    Pending.clear();
    Labels.clear();
  }

  // Returns true if the text defines or references labels, which the context keeps.
  bool hasSymbols() const { return !Pending.empty() || !Labels.empty(); }

  void emitInstruction(const MCInst &Inst, const MCSubtargetInfo &Subtarget) override {
    SmallVector<MCFixup, 2> Fixups;
    size_t Start = Bytes.size();
    Emitter.encodeInstruction(Inst, Bytes, Fixups, Subtarget);
    for (const MCFixup &Fixup : Fixups)
      Pending.push_back({Start + Fixup.getOffset(), Fixup, Inst.getLoc()});
  }

  void emitLabel(MCSymbol *Symbol, SMLoc Location) override {
    MCStreamer::emitLabel(Symbol, Location);
    Labels.push_back({Symbol, Bytes.size()});
  }

  void resolve() {
    for (const PendingFixup &Fixup : Pending)
      resolve(Fixup);
  }

  bool emitSymbolAttribute(MCSymbol *, MCSymbolAttr) override { return false; }
  void emitCommonSymbol(MCSymbol *, uint64_t, Align) override {}
  void emitZerofill(MCSection *, MCSymbol *, uint64_t, Align, SMLoc) override {}

private:
  struct PendingFixup {
    size_t Offset;
    MCFixup Fixup;
    SMLoc Location;
  };
  struct Label {
    const MCSymbol *Symbol;
    size_t Offset;
  };

  const MCCodeEmitter &Emitter;
  SourceMgr &Sources;
  FirstError &Error;
  std::vector<PendingFixup> Pending;
  std::vector<Label> Labels;

  void report(SMLoc Location, const Twine &Message) {
    Error.set(Sources.GetMessage(Location, SourceMgr::DK_Error, Message));
  }

  void resolve(const PendingFixup &Pending) {
    const auto *Reference = dyn_cast<MCSymbolRefExpr>(Pending.Fixup.getValue());
    // AMDGPU has a single target-specific fixup: the 16-bit branch offset in words.
    if (!Reference || Pending.Fixup.getKind() != FirstTargetFixupKind)
      return report(Pending.Location, "symbols are supported as branch targets only");
    std::optional<size_t> Target;
    for (const Label &Label : Labels)
      if (Label.Symbol == &Reference->getSymbol())
        Target = Label.Offset;
    if (!Target)
      return report(Pending.Location, "label '" + Reference->getSymbol().getName() +
                                            "' is not defined in this text");
    int64_t Words = (int64_t(*Target) - int64_t(Pending.Offset) - 4) / 4;
    if (Words < INT16_MIN || Words > INT16_MAX)
      return report(Pending.Location, "branch target out of range");
    Bytes[Pending.Offset] = char(Words);
    Bytes[Pending.Offset + 1] = char(Words >> 8);
  }
};

// LLVM's assembler parser. Creating it takes many times as long as parsing an instruction, so it is
// reused for later texts.
struct TextParser {
  SourceMgr Sources;
  MCContext Context;
  std::unique_ptr<MCCodeEmitter> Emitter;
  ByteStreamer Streamer;
  std::unique_ptr<MCAsmParser> Parser;
  std::unique_ptr<MCTargetAsmParser> TargetParser;
  unsigned Texts = 0;

  explicit TextParser(FlipwaveSession &Session);
  // Parses a text and returns true on success. The streamer then holds the bytes.
  bool parse(StringRef Text);
};

// Number of bytes that the disassembler may read; no instruction is longer.
constexpr size_t LongestInstruction = 32;

// Reports a larger maximum instruction length to the disassembler: LLVM 22 crashes if a literal lies
// beyond that length. Decoded instructions that are too long are rejected afterwards.
class DecodingAsmInfo final : public MCAsmInfoELF {
public:
  unsigned getMaxInstLength(const MCSubtargetInfo *) const override { return LongestInstruction; }
};

// Maximum number of texts per parser, which keeps all of them in memory.
constexpr unsigned MaxTexts = 4096;

} // namespace

struct FlipwaveSession {
  const Target *TheTarget;
  Triple TheTriple;
  MCTargetOptions Options;
  std::unique_ptr<MCRegisterInfo> Registers;
  std::unique_ptr<MCAsmInfo> AsmInfo;
  std::unique_ptr<MCInstrInfo> Instructions;
  std::unique_ptr<MCSubtargetInfo> Subtarget;
  DecodingAsmInfo DecoderAsmInfo;
  std::unique_ptr<MCContext> Context;
  std::unique_ptr<MCDisassembler> Disassembler;
  std::unique_ptr<MCInstPrinter> Printer;
  std::unique_ptr<MCCodeEmitter> Emitter;

  // Discards the disassembler's remarks. LLVM's nulls() is shared by all threads and has a buffer.
  raw_null_ostream Remarks;
  SmallString<128> Text;
  std::vector<FlipwaveOperand> Operands;
  SmallVector<char, 64> Bytes;
  FirstError Error;
  std::unique_ptr<TextParser> Assembler;
};

FlipwaveSession *flipwave_open(const char *Processor, const char *Features) {
  auto Session = std::make_unique<FlipwaveSession>();
  std::string Error;
  Session->TheTriple = Triple(TripleName);
  Session->TheTarget = TargetRegistry::lookupTarget(Session->TheTriple, Error);
  if (!Session->TheTarget)
    return nullptr;
  const Target &T = *Session->TheTarget;
  Session->Registers.reset(T.createMCRegInfo(Session->TheTriple));
  Session->Instructions.reset(T.createMCInstrInfo());
  if (!Session->Registers || !Session->Instructions)
    return nullptr;
  Session->AsmInfo.reset(T.createMCAsmInfo(*Session->Registers, Session->TheTriple, Session->Options));
  Session->Subtarget.reset(T.createMCSubtargetInfo(Session->TheTriple, Processor, Features));
  if (!Session->AsmInfo || !Session->Subtarget || !Session->Subtarget->isCPUStringValid(Processor))
    return nullptr;
  Session->Context = std::make_unique<MCContext>(Session->TheTriple, &Session->DecoderAsmInfo,
                                                 Session->Registers.get(),
                                                 Session->Subtarget.get());
  Session->Disassembler.reset(T.createMCDisassembler(*Session->Subtarget, *Session->Context));
  Session->Printer.reset(T.createMCInstPrinter(Session->TheTriple, 0, *Session->AsmInfo,
                                               *Session->Instructions, *Session->Registers));
  Session->Emitter.reset(T.createMCCodeEmitter(*Session->Instructions, *Session->Context));
  if (!Session->Disassembler || !Session->Printer || !Session->Emitter)
    return nullptr;
  return Session.release();
}

void flipwave_close(FlipwaveSession *Session) { delete Session; }

static uint32_t flagsOf(const MCInstrDesc &Description) {
  uint32_t Flags = 0;
  auto Set = [&](bool Condition, FlipwaveFlag Flag) {
    if (Condition)
      Flags |= Flag;
  };
  Set(Description.mayLoad(), FLIPWAVE_LOADS);
  Set(Description.mayStore(), FLIPWAVE_STORES);
  Set(Description.isBranch() || Description.isIndirectBranch(), FLIPWAVE_BRANCH);
  Set(Description.isConditionalBranch(), FLIPWAVE_CONDITIONAL);
  Set(Description.isCall(), FLIPWAVE_CALL);
  Set(Description.isTerminator(), FLIPWAVE_TERMINATOR);
  Set(Description.isBarrier(), FLIPWAVE_BARRIER);
  Set(Description.hasUnmodeledSideEffects(), FLIPWAVE_SIDE_EFFECTS);
  return Flags;
}

static FlipwaveOperand operandOf(const MCInstrDesc &Description, const MCInst &Inst,
                                 unsigned Index) {
  const MCOperand &Operand = Inst.getOperand(Index);
  FlipwaveOperand Result = {0, FLIPWAVE_OTHER, 0, 0, 0};
  if (Index < Description.getNumOperands())
    Result.type = Description.operands()[Index].OperandType;
  if (Operand.isReg() && Operand.getReg() != 0) {
    Result.kind = FLIPWAVE_REGISTER;
    Result.value = Operand.getReg();
    Result.definition = Index < Description.getNumDefs();
    int Tied = Index < Description.getNumOperands()
                   ? Description.getOperandConstraint(Index, MCOI::TIED_TO)
                   : -1;
    Result.tied = Tied >= 0;
    // For the second half of a VOPD instruction, LLVM's disassembler corrects the lowest bit of the
    // destination's number but not that of the register tied to it.
    if (Result.tied && Inst.getOperand(Tied).isReg())
      Result.value = Inst.getOperand(Tied).getReg();
  } else if (Operand.isImm()) {
    Result.kind = FLIPWAVE_IMMEDIATE;
    Result.value = Operand.getImm();
  }
  return Result;
}

// Returns true if an SDWA field has a reserved value. LLVM's disassembler accepts these, but its printer
// has undefined behavior on them. Comparisons have a scalar destination instead of a destination select,
// which only the encoding shows (Instinct MI200 ISA, "SDWA" and "SDWAB").
static bool hasReservedField(const MCInstrDesc &Description, const uint8_t *Bytes) {
  constexpr uint64_t Sdwa = 1 << 14; // A bit of TSFlags, LLVM's SIInstrFlags.
  constexpr uint8_t Vopc = 0x3e, Vop1 = 0x3f;
  if (!(Description.TSFlags & Sdwa))
    return false;
  uint8_t Encoding = Bytes[3] >> 1;
  uint8_t DestinationSelect = Bytes[5] & 7, DestinationUnused = Bytes[5] >> 3 & 3;
  uint8_t Source0Select = Bytes[6] & 7, Source1Select = Bytes[7] & 7;
  bool HasDestination = Encoding != Vopc;
  bool HasSource1 = Encoding != Vop1;
  return (HasDestination && (DestinationSelect == 7 || DestinationUnused == 3)) ||
         Source0Select == 7 || (HasSource1 && Source1Select == 7);
}

// The number of bits in which the encoding of an instruction differs from `Bytes`.
static unsigned distance(FlipwaveSession &Session, const MCInst &Inst, ArrayRef<uint8_t> Bytes) {
  SmallVector<char, 24> Encoded;
  SmallVector<MCFixup, 2> Fixups;
  Session.Emitter->encodeInstruction(Inst, Encoded, Fixups, *Session.Subtarget);
  if (Bytes.size() != Encoded.size())
    return UINT_MAX;
  unsigned Differing = 0;
  for (auto [Expected, Actual] : zip(Bytes, Encoded))
    Differing += popcount(uint8_t(Expected ^ uint8_t(Actual)));
  return Differing;
}

// Corrects floating-point inline constants of 16-bit integer operands. Such operands read the low half
// of the single-precision constant (LLVM's SIInstrInfo::isInlineConstant). LLVM's assembler and printer
// agree, but its disassembler returns the half-precision constant. A literal with the same bits must not
// be changed: an operand was encoded as a constant if the corrected instruction encodes to the original
// bytes, except for bits that the disassembler ignores.
static void correctConstants(FlipwaveSession &Session, MCInst &Inst, ArrayRef<uint8_t> Bytes) {
  // OPERAND_REG_IMM_ and OPERAND_REG_INLINE_C_, each INT16 and V2INT16, of LLVM's AMDGPU::OperandType.
  // Keep in sync with I16 and PackedI16 in the table TYPES of src/constant.rs.
  constexpr uint8_t Int16Types[] = {15, 23, 27, 34};
  struct Constant {
    int64_t Half, Single;
  };
  constexpr Constant Constants[] = {
      {0x3800, 0x3f000000}, {0xb800, 0xbf000000}, {0x3c00, 0x3f800000},
      {0xbc00, 0xbf800000}, {0x4000, 0x40000000}, {0xc000, 0xc0000000},
      {0x4400, 0x40800000}, {0xc400, 0xc0800000}, {0x3118, 0x3e22f983},
  };
  const MCInstrDesc &Description = Session.Instructions->get(Inst.getOpcode());
  SmallVector<std::pair<unsigned, int64_t>, 3> Candidates;
  unsigned Described = std::min(Description.getNumOperands(), Inst.getNumOperands());
  for (unsigned Index = 0; Index < Described; ++Index) {
    if (!is_contained(Int16Types, Description.operands()[Index].OperandType))
      continue;
    const MCOperand &Operand = Inst.getOperand(Index);
    for (const Constant &Constant : Constants)
      if (Operand.isImm() && Operand.getImm() == Constant.Half)
        Candidates.push_back({Index, Constant.Single});
  }
  if (Candidates.empty())
    return;
  const MCInst Decoded = Inst;
  unsigned BestDistance = distance(Session, Decoded, Bytes);
  for (unsigned Subset = 1; Subset < 1u << Candidates.size(); ++Subset) {
    MCInst Corrected = Decoded;
    for (unsigned Index = 0; Index < Candidates.size(); ++Index)
      if (Subset >> Index & 1)
        Corrected.getOperand(Candidates[Index].first).setImm(Candidates[Index].second);
    unsigned Distance = distance(Session, Corrected, Bytes);
    if (Distance < BestDistance) {
      BestDistance = Distance;
      Inst = Corrected;
    }
  }
}

int flipwave_decode(FlipwaveSession *Session, const uint8_t *Bytes, size_t Length,
                    uint64_t Address, FlipwaveDecoded *Decoded) {
  MCInst Inst;
  uint64_t Size = 0;
  uint8_t Padded[LongestInstruction] = {};
  std::copy_n(Bytes, std::min(Length, LongestInstruction), Padded);
  auto Status =
      Session->Disassembler->getInstruction(Inst, Size, Padded, Address, Session->Remarks);
  size_t Longest = Session->AsmInfo->getMaxInstLength(Session->Subtarget.get());
  // Soft failures are fields with other values than the current assembler writes: LLVM 15 wrote zeros
  // into the unnamed result of v_cmpx.
  if (Status == MCDisassembler::Fail || Size == 0 || Size > std::min(Length, Longest))
    return 0;
  const MCInstrDesc &Description = Session->Instructions->get(Inst.getOpcode());
  if (hasReservedField(Description, Bytes))
    return 0;
  correctConstants(*Session, Inst, ArrayRef(Bytes, Size));

  Session->Text.clear();
  raw_svector_ostream Stream(Session->Text);
  Session->Printer->printInst(&Inst, Address, "", *Session->Subtarget, Stream);
  Session->Operands.clear();
  for (unsigned Index = 0; Index < Inst.getNumOperands(); ++Index)
    Session->Operands.push_back(operandOf(Description, Inst, Index));

  Decoded->name = Session->Instructions->getName(Inst.getOpcode()).data();
  Decoded->text = Session->Text.data();
  Decoded->text_length = Session->Text.size();
  Decoded->operands = Session->Operands.data();
  Decoded->operand_count = Session->Operands.size();
  Decoded->implicit_definitions = Description.implicit_defs().data();
  Decoded->implicit_definition_count = Description.implicit_defs().size();
  Decoded->implicit_uses = Description.implicit_uses().data();
  Decoded->implicit_use_count = Description.implicit_uses().size();
  Decoded->format = Description.TSFlags;
  Decoded->size = uint32_t(Size);
  Decoded->flags = flagsOf(Description);
  return 1;
}

TextParser::TextParser(FlipwaveSession &Session)
    : Context(Session.TheTriple, Session.AsmInfo.get(), Session.Registers.get(),
              Session.Subtarget.get(), &Sources, &Session.Options),
      Emitter(Session.TheTarget->createMCCodeEmitter(*Session.Instructions, Context)),
      Streamer(Context, *Emitter, Sources, Session.Error) {
  FirstError &Error = Session.Error;
  Sources.setDiagHandler(
      [](const SMDiagnostic &Diagnostic, void *Error) {
        static_cast<FirstError *>(Error)->set(Diagnostic);
      },
      &Error);
  Context.setDiagnosticHandler([&](const SMDiagnostic &Diagnostic, bool, const SourceMgr &,
                                   std::vector<const MDNode *> &) { Error.set(Diagnostic); });
  Sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer("", "text"), SMLoc());
  const Target &T = *Session.TheTarget;
  T.createNullTargetStreamer(Streamer);
  Parser.reset(createMCAsmParser(Sources, Context, Streamer, *Session.AsmInfo));
  TargetParser.reset(T.createMCAsmParser(*Session.Subtarget, *Parser, *Session.Instructions,
                                         Session.Options));
  Parser->setTargetParser(*TargetParser);
  // A single section; MCObjectFileInfo would create dozens.
  Streamer.switchSection(Context.getELFSection(".text", ELF::SHT_PROGBITS, ELF::SHF_EXECINSTR));
}

bool TextParser::parse(StringRef Text) {
  ++Texts;
  Streamer.clear();
  unsigned Buffer =
      Sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(Text, "text"), SMLoc());
  // createMCAsmParser creates an AsmLexer.
  auto &Lexer = static_cast<AsmLexer &>(Parser->getLexer());
  Lexer.setBuffer(Sources.getMemoryBuffer(Buffer)->getBuffer());
  return !Parser->Run(/*NoInitialTextSection=*/true, /*NoFinalize=*/true);
}

static void assemble(FlipwaveSession &Session, StringRef Text) {
  FirstError &Error = Session.Error;
  std::unique_ptr<TextParser> Parser = std::move(Session.Assembler);
  if (!Parser)
    Parser = std::make_unique<TextParser>(Session);
  bool Parsed = Parser->parse(Text);
  ByteStreamer &Streamer = Parser->Streamer;
  if (Parsed && !Error.Present)
    Streamer.resolve();
  if (!Parsed)
    Error.set("invalid assembler text", 0, 0);
  Session.Bytes.assign(Streamer.Bytes.begin(), Streamer.Bytes.end());
  // Reuse the parser only if no error or label affects later texts.
  if (!Error.Present && !Streamer.hasSymbols() && Parser->Texts < MaxTexts)
    Session.Assembler = std::move(Parser);
}

int flipwave_assemble(FlipwaveSession *Session, const char *Text, size_t Length,
                      FlipwaveAssembled *Assembled) {
  Session->Error = FirstError();
  assemble(*Session, StringRef(Text, Length));
  const FirstError &Error = Session->Error;
  *Assembled = {};
  if (Error.Present) {
    Assembled->message = Error.Message.data();
    Assembled->message_length = Error.Message.size();
    Assembled->line = Error.Line;
    Assembled->column = Error.Column;
    return 0;
  }
  Assembled->bytes = reinterpret_cast<const uint8_t *>(Session->Bytes.data());
  Assembled->length = Session->Bytes.size();
  return 1;
}

uint32_t flipwave_register_count(const FlipwaveSession *Session) {
  return Session->Registers->getNumRegs();
}

const char *flipwave_register_name(const FlipwaveSession *Session, uint32_t Number) {
  return Session->Registers->getName(Number);
}

uint32_t flipwave_feature_count(const FlipwaveSession *Session) {
  return Session->Subtarget->getAllProcessorFeatures().size();
}

FlipwaveFeature flipwave_feature(const FlipwaveSession *Session, uint32_t Number) {
  const SubtargetFeatureKV &Feature = Session->Subtarget->getAllProcessorFeatures()[Number];
  return {Feature.Key, Feature.Desc, Session->Subtarget->hasFeature(Feature.Value)};
}
