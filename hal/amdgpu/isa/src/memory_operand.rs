//! Address and data operands of memory instructions.

use crate::{
    Encoding, Family, Inst, MemoryAccess, MemoryKind, MemorySpace, Operation, Register,
    RegisterRange, Role, Value,
};

/// The memory access of an instruction with its address and data registers.
///
/// The address of a lane is the sum of the parts that are present, with one address for each element of
/// [`MemoryOperand::offsets`] (the ISA documents, "Address calculation" of each memory unit):
/// - global: `saddr` (64 bits) + `vaddr` (32 bits, unsigned) + offset, or `vaddr` (64 bits) + offset;
/// - flat: `vaddr` (64 bits) + offset; the aperture that contains the address selects the memory;
/// - scratch: offset `vaddr` + `saddr` (32 bits each) + offset in the lane's private memory;
/// - LDS: `vaddr` (32 bits) + offset;
/// - buffer: the resource's base + `soffset` + offset + the byte offset in `vaddr` if
///   [`MemoryOperand::offen`] + the stride times the index in `vaddr` if
///   [`MemoryOperand::idxen`]; the index precedes the byte offset if `vaddr` has both. The resource may
///   enable swizzling and add the lane id to the index;
/// - scalar: `saddr` (64 bits), or the base of `resource`, + `soffset` (32 bits, unsigned) +
///   offset, with the low two bits cleared.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryOperand {
    /// Space, kind and width.
    pub access: MemoryAccess,
    /// The VGPR or VGPR pair of the address.
    pub vaddr: Option<RegisterRange>,
    /// The SGPR or SGPR pair of the address.
    pub saddr: Option<RegisterRange>,
    /// The four SGPRs of the buffer resource.
    pub resource: Option<RegisterRange>,
    /// The scalar offset register.
    pub soffset: Option<RegisterRange>,
    /// Constant offsets in bytes: one, or two for two-address LDS operations.
    pub offsets: Vec<i64>,
    /// `vaddr` of a buffer access has a byte offset.
    pub offen: bool,
    /// `vaddr` of a buffer access has an index.
    pub idxen: bool,
    /// 16 bits of M0 are added to the LDS address (`addtid`, `append`, `consume`).
    pub address_in_m0: bool,
    /// Four times the lane id is added to the address (`addtid`).
    pub adds_lane_id: bool,
    /// Loaded data goes to LDS at the address in M0 instead of registers.
    pub to_lds: bool,
    /// Destination registers of the loaded data.
    pub loaded: Option<RegisterRange>,
    /// Registers with the stored data or the operands of the atomic operation, in assembler order.
    pub stored: Vec<RegisterRange>,
}

impl Inst {
    /// The address and data operands; `None` if [`Inst::memory`] is `None`, and for images.
    pub fn memory_operand(&self) -> Option<MemoryOperand> {
        let access = self.memory()?;
        let to_lds = self.modifiers.lds || self.operation.is(Family::LoadToLds);
        let loaded = self.destinations().find_map(|operand| register(&operand.value));
        let mut operand = MemoryOperand {
            access,
            vaddr: None,
            saddr: None,
            resource: None,
            soffset: None,
            offsets: vec![self.modifiers.offset],
            offen: self.modifiers.offen,
            idxen: self.modifiers.idxen,
            address_in_m0: false,
            adds_lane_id: self.operation.is(Family::AddTid),
            to_lds,
            loaded,
            stored: Vec::new(),
        };
        let sources: Vec<&Value> = self
            .operands
            .iter()
            .filter(|operand| operand.role == Role::Source)
            .map(|operand| &operand.value)
            .collect();
        match self.encoding {
            Encoding::Mubuf | Encoding::Mtbuf => operand.buffer(&sources)?,
            Encoding::Smem => operand.scalar(&sources)?,
            Encoding::Ds => {
                operand.address_in_m0 = self.operation.is(Family::LdsUsesM0);
                operand.lds(
                    &sources,
                    self.operation,
                    [self.modifiers.offset0, self.modifiers.offset1],
                );
            }
            Encoding::Flat | Encoding::Global | Encoding::Scratch => operand.flat(&sources),
            _ => return None,
        }
        // A returning atomic whose text names one data register has its operand in the destination.
        let has_operand = !operand.stored.is_empty() || operand.address_in_m0;
        if access.kind == MemoryKind::Atomic && !has_operand {
            operand.stored.extend(loaded);
        }
        Some(operand)
    }
}

impl MemoryOperand {
    /// Assigns the sources `[vdata,] vaddr, resource, soffset`.
    fn buffer(&mut self, sources: &[&Value]) -> Option<()> {
        let is_resource = |value: &&Value| {
            register(value).is_some_and(|range| range.words == 4 && !range.first.is_per_lane())
        };
        let resource = sources.iter().position(is_resource)?;
        self.resource = sources.get(resource).copied().and_then(register);
        let mut data_and_address = sources.get(..resource).unwrap_or_default().iter();
        self.vaddr = data_and_address.next_back().copied().and_then(register);
        self.stored.extend(data_and_address.copied().filter_map(register));
        match sources.get(resource + 1) {
            Some(Value::Register(range)) => self.soffset = not_null(*range),
            Some(Value::Integer(integer)) => self.add_offset(*integer),
            Some(Value::Literal(literal)) => self.add_offset(i64::from(*literal)),
            Some(Value::Float(float)) => self.add_offset(i64::from((*float as f32).to_bits())),
            _ => {}
        }
        Some(())
    }

    /// Assigns the sources `[sdata,] sbase, offset`.
    fn scalar(&mut self, sources: &[&Value]) -> Option<()> {
        let (offset, registers) = sources.split_last()?;
        match offset {
            Value::Register(range) => self.soffset = not_null(*range),
            Value::Integer(integer) => self.add_offset(*integer),
            Value::Literal(literal) => self.add_offset(i64::from(*literal)),
            _ => {}
        }
        let (base, data) = registers.split_last()?;
        let base = register(base)?;
        match base.words {
            4 => self.resource = Some(base),
            _ => self.saddr = Some(base),
        }
        self.stored.extend(data.iter().copied().filter_map(register));
        Some(())
    }

    /// Assigns the sources `[vaddr,] [data,] [data]`.
    fn lds(&mut self, sources: &[&Value], operation: Operation, offsets: [u8; 2]) {
        let mut registers = sources.iter().copied().filter_map(register);
        if !self.address_in_m0 {
            self.vaddr = registers.next();
        }
        self.stored.extend(registers);
        if operation.is(Family::TwoAddresses) {
            let stride = if operation.is(Family::Stride64) { 64 } else { 1 };
            let element = i64::from(self.access.bytes / 2) * stride;
            self.offsets = offsets.map(|offset| i64::from(offset) * element).to_vec();
        }
    }

    /// Assigns the sources `[vaddr,] [data,] [saddr]`; flat has no `saddr` and `addtid` no `vaddr`.
    fn flat(&mut self, sources: &[&Value]) {
        let mut sources = sources.iter().copied();
        if self.access.space != MemorySpace::Flat {
            self.saddr = sources.next_back().and_then(register);
        }
        if !self.adds_lane_id {
            self.vaddr = sources.next().and_then(register);
        }
        self.stored.extend(sources.filter_map(register));
    }

    fn add_offset(&mut self, constant: i64) {
        self.offsets.iter_mut().for_each(|offset| *offset += constant);
    }
}

fn register(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => not_null(*range),
        _ => None,
    }
}

/// Returns `range` unless it is the `null` register, which denotes an absent operand.
fn not_null(range: RegisterRange) -> Option<RegisterRange> {
    (range.first != Register::Null).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inst;

    /// Formats a memory operand: `v` vaddr, `s` saddr, `r` resource, `o` soffset, offsets, `->` loaded,
    /// `<-` stored.
    fn described(target: &str, line: &str) -> String {
        let inst = inst(target, line);
        let operand = inst.memory_operand().unwrap_or_else(|| panic!("{line}: no memory operand"));
        let mut words = Vec::new();
        for (name, range) in [
            ("v", operand.vaddr),
            ("s", operand.saddr),
            ("r", operand.resource),
            ("o", operand.soffset),
        ] {
            words.extend(range.map(|range| format!("{name}={range}")));
        }
        words.push(format!("{:?}", operand.offsets));
        for (name, flag) in [
            ("offen", operand.offen),
            ("idxen", operand.idxen),
            ("m0", operand.address_in_m0),
            ("lane", operand.adds_lane_id),
            ("lds", operand.to_lds),
        ] {
            words.extend(flag.then(|| name.to_owned()));
        }
        words.extend(operand.loaded.map(|range| format!("->{range}")));
        words.extend(operand.stored.iter().map(|range| format!("<-{range}")));
        words.join(" ")
    }

    #[test]
    fn address_and_data_match_the_assembler_text() {
        for (target, line, expected) in [
            ("gfx90a", "global_load_dword v0, v1, s[2:3] offset:8", "v=v1 s=s[2:3] [8] ->v0"),
            (
                "gfx90a",
                "global_load_dwordx2 v[4:5], v[2:3], off offset:-16",
                "v=v[2:3] [-16] ->v[4:5]",
            ),
            ("gfx90a", "global_store_short v[2:3], v4, off", "v=v[2:3] [0] <-v4"),
            ("gfx90a", "global_store_dword v1, v4, s[6:7]", "v=v1 s=s[6:7] [0] <-v4"),
            ("gfx90a", "global_atomic_add v1, v[2:3], v4, off glc", "v=v[2:3] [0] ->v1 <-v4"),
            ("gfx90a", "global_atomic_cmpswap v0, v[2:3], s[4:5]", "v=v0 s=s[4:5] [0] <-v[2:3]"),
            ("gfx90a", "flat_load_dword v0, v[2:3] offset:4", "v=v[2:3] [4] ->v0"),
            ("gfx90a", "flat_store_dwordx2 v[2:3], v[4:5]", "v=v[2:3] [0] <-v[4:5]"),
            (
                "gfx90a",
                "flat_atomic_add_x2 v[0:1], v[2:3], v[4:5] glc",
                "v=v[2:3] [0] ->v[0:1] <-v[4:5]",
            ),
            ("gfx90a", "scratch_load_dword v0, v1, off offset:4", "v=v1 [4] ->v0"),
            ("gfx90a", "scratch_load_dword v0, off, s33", "s=s33 [0] ->v0"),
            ("gfx90a", "scratch_store_dword off, a1, s33 offset:12", "s=s33 [12] <-a1"),
            ("gfx942", "scratch_store_dword v0, v1, s3", "v=v0 s=s3 [0] <-v1"),
            ("gfx942", "scratch_load_dword v0, off, off", "[0] ->v0"),
            ("gfx90a", "buffer_load_dword v5, off, s[0:3], 0 offset:4", "r=s[0:3] [4] ->v5"),
            (
                "gfx90a",
                "buffer_load_dword v5, v1, s[0:3], s7 offen",
                "v=v1 r=s[0:3] o=s7 [0] offen ->v5",
            ),
            (
                "gfx90a",
                "buffer_store_dword v5, v[2:3], s[0:3], 16 idxen offen offset:4",
                "v=v[2:3] r=s[0:3] [20] offen idxen <-v5",
            ),
            (
                "gfx90a",
                "buffer_atomic_add v5, v1, s[0:3], m0 idxen glc",
                "v=v1 r=s[0:3] o=m0 [0] idxen ->v5 <-v5",
            ),
            (
                "gfx90a",
                "buffer_load_dword v1, s[0:3], s4 offen lds",
                "v=v1 r=s[0:3] o=s4 [0] offen lds",
            ),
            ("gfx90a", "tbuffer_store_format_x v5, off, s[0:3], s1", "r=s[0:3] o=s1 [0] <-v5"),
            (
                "gfx1100",
                "tbuffer_load_format_x v5, off, s[0:3], s1 format:[BUF_FMT_32_FLOAT]",
                "r=s[0:3] o=s1 [0] ->v5",
            ),
            (
                "gfx1100",
                "buffer_load_b32 v5, v1, s[0:3], null offen",
                "v=v1 r=s[0:3] [0] offen ->v5",
            ),
            ("gfx90a", "ds_read_b32 v0, v1 offset:12", "v=v1 [12] ->v0"),
            (
                "gfx90a",
                "ds_read2st64_b32 v[0:1], v2 offset0:1 offset1:3",
                "v=v2 [256, 768] ->v[0:1]",
            ),
            (
                "gfx90a",
                "ds_write2_b64 v0, v[2:3], v[4:5] offset0:2 offset1:1",
                "v=v0 [16, 8] <-v[2:3] <-v[4:5]",
            ),
            ("gfx1100", "ds_load_2addr_b64 v[0:3], v4 offset1:1", "v=v4 [0, 8] ->v[0:3]"),
            ("gfx90a", "ds_cmpst_rtn_b32 v0, v1, v2, v3", "v=v1 [0] ->v0 <-v2 <-v3"),
            ("gfx90a", "ds_append v0 offset:8", "[8] m0 ->v0"),
            ("gfx90a", "ds_write_addtid_b32 v3 offset:8", "[8] m0 lane <-v3"),
            ("gfx1030", "global_load_dword_addtid v0, s[2:3] offset:4", "s=s[2:3] [4] lane ->v0"),
            ("gfx942", "global_load_lds_dword v1, s[2:3]", "v=v1 s=s[2:3] [0] lds"),
            ("gfx90a", "s_load_dwordx2 s[4:5], s[2:3], 0x10", "s=s[2:3] [16] ->s[4:5]"),
            ("gfx90a", "s_load_dword s4, s[2:3], s6 offset:0x8", "s=s[2:3] o=s6 [8] ->s4"),
            ("gfx90a", "s_buffer_load_dword s4, s[8:11], s6", "r=s[8:11] o=s6 [0] ->s4"),
            ("gfx90a", "s_store_dword s4, s[2:3], 0x4", "s=s[2:3] [4] <-s4"),
            ("gfx1100", "s_load_b32 s4, s[2:3], null", "s=s[2:3] [0] ->s4"),
        ] {
            assert_eq!(described(target, line), expected, "{target}: {line}");
        }
    }

    /// Every register that LLVM describes as read appears in exactly one part.
    #[test]
    fn memory_operand_includes_each_read_register_once() {
        for (target, line) in [
            ("gfx90a", "global_atomic_cmpswap_x2 v[0:1], v2, v[4:7], s[2:3] glc"),
            ("gfx90a", "buffer_atomic_cmpswap v[4:5], v[2:3], s[0:3], s9 idxen offen"),
            ("gfx90a", "ds_wrxchg2_rtn_b64 v[0:3], v4, v[6:7], v[8:9] offset1:1"),
            ("gfx942", "flat_atomic_add_f32 v[2:3], v4"),
            ("gfx1100", "scratch_store_b128 v0, v[4:7], s3"),
            ("gfx90a", "s_atomic_add s4, s[2:3], s5 glc"),
        ] {
            let inst = inst(target, line);
            let operand = inst.memory_operand().unwrap();
            let parts = [operand.vaddr, operand.saddr, operand.resource, operand.soffset];
            let mut named: Vec<String> = parts
                .into_iter()
                .flatten()
                .chain(operand.stored)
                .map(|range| range.to_string())
                .collect();
            let implicit = ["exec", "exec_lo", "flat_scratch", "m0"];
            let mut read: Vec<String> = inst
                .reads
                .iter()
                .map(RegisterRange::to_string)
                .filter(|name| !implicit.contains(&name.as_str()))
                .collect();
            named.sort();
            read.sort();
            assert_eq!(named, read, "{target}: {line}");
        }
    }

    #[test]
    fn instructions_without_memory_access_have_no_memory_operand() {
        for line in ["ds_bpermute_b32 v0, v1, v2", "s_dcache_inv", "v_mov_b32 v0, v1"] {
            assert_eq!(inst("gfx90a", line).memory_operand(), None, "{line}");
        }
    }
}
