//! What a load or store moves, in memory and in the register.

/// The memory side of a load or store, and the part of the register that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// So many whole words.
    Words(u8),
    /// A byte or half word in a register of its own.
    Part {
        /// 1 or 2.
        bytes: u8,
        /// Loads extend the sign instead of zeros.
        signed: bool,
        /// Which part of the register is used.
        half: Half,
    },
}

/// The part of a register that a sub-word access uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// All of it.
    Whole,
    /// The low half; loads keep the other one.
    Low,
    /// The high half; loads keep the other one.
    High,
    /// The low half; loads make the other one zero.
    LowAlone,
    /// The high half; loads make the other one zero.
    HighAlone,
}

impl Element {
    /// The element that the end of a mnemonic names: `dwordx2` and `ubyte_d16_hi` of vector memory,
    /// `b64` and `u8_d16_hi` of LDS.
    pub fn named(name: &str) -> Option<Element> {
        let part = |bytes, signed, half| Element::Part { bytes, signed, half };
        Some(match name {
            "dword" | "b32" => Element::Words(1),
            "dwordx2" | "b64" => Element::Words(2),
            "dwordx3" | "b96" => Element::Words(3),
            "dwordx4" | "b128" => Element::Words(4),
            "ubyte" | "byte" | "u8" | "b8" => part(1, false, Half::Whole),
            "sbyte" | "i8" => part(1, true, Half::Whole),
            "ushort" | "short" | "u16" | "b16" => part(2, false, Half::Whole),
            "sshort" | "i16" => part(2, true, Half::Whole),
            "ubyte_d16" | "u8_d16" => part(1, false, Half::Low),
            "ubyte_d16_hi" | "byte_d16_hi" | "u8_d16_hi" | "b8_d16_hi" => {
                part(1, false, Half::High)
            }
            "sbyte_d16" | "i8_d16" => part(1, true, Half::Low),
            "sbyte_d16_hi" | "i8_d16_hi" => part(1, true, Half::High),
            "short_d16" | "u16_d16" => part(2, false, Half::Low),
            "short_d16_hi" | "u16_d16_hi" | "b16_d16_hi" => part(2, false, Half::High),
            _ => return None,
        })
    }

    /// The same where loads write whole registers.
    pub fn in_whole_registers(self) -> Element {
        match self {
            Element::Part { bytes, signed, half: Half::Low } => {
                Element::Part { bytes, signed, half: Half::LowAlone }
            }
            Element::Part { bytes, signed, half: Half::High } => {
                Element::Part { bytes, signed, half: Half::HighAlone }
            }
            other => other,
        }
    }

    /// Bytes in memory.
    pub fn bytes(self) -> usize {
        match self {
            Element::Words(words) => usize::from(words) * 4,
            Element::Part { bytes, .. } => usize::from(bytes),
        }
    }

    /// Registers it fills or drains.
    pub fn words(self) -> u8 {
        match self {
            Element::Words(words) => words,
            Element::Part { .. } => 1,
        }
    }

    /// The new register, from the bytes loaded and the old content.
    pub fn extend(self, loaded: u32, old: u32) -> u32 {
        let Element::Part { bytes, signed, half } = self else { return loaded };
        let value = match (bytes, signed) {
            (1, true) => loaded as i8 as u32,
            (1, false) => u32::from(loaded as u8),
            (_, true) => loaded as i16 as u32,
            (_, false) => u32::from(loaded as u16),
        };
        match half {
            Half::Whole => value,
            Half::Low => old & 0xffff_0000 | value & 0xffff,
            Half::High => old & 0xffff | value << 16,
            Half::LowAlone => value & 0xffff,
            Half::HighAlone => value << 16,
        }
    }

    /// The bits to store, in the low end of a word.
    pub fn part(self, register: u32) -> u32 {
        match self {
            Element::Part { half: Half::High | Half::HighAlone, .. } => register >> 16,
            _ => register,
        }
    }
}

#[cfg(test)]
mod tests;
