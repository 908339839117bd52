//! The data unit of a load or store, in memory and in the register.

/// Size in memory of a loaded or stored element, and the part of the register that it occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Whole words.
    Words(u8),
    /// A byte or half word in a separate register.
    Part {
        /// 1 or 2.
        bytes: u8,
        /// `true` if loads sign-extend instead of zero-extend.
        signed: bool,
        /// Part of the register that is used.
        half: Half,
    },
}

/// The part of a register that a sub-word access uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The whole register.
    Whole,
    /// The low half; loads keep the high half.
    Low,
    /// The high half; loads keep the low half.
    High,
    /// The low half; loads clear the high half.
    LowAlone,
    /// The high half; loads clear the low half.
    HighAlone,
}

impl Element {
    /// Element for the end of a mnemonic: `dwordx2` and `ubyte_d16_hi` of vector memory, `b64` and
    /// `u8_d16_hi` of LDS.
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

    /// Element with halves converted for targets whose loads write whole registers.
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

    /// Size in memory in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::Words(words) => usize::from(words) * 4,
            Element::Part { bytes, .. } => usize::from(bytes),
        }
    }

    /// Number of registers.
    pub fn words(self) -> u8 {
        match self {
            Element::Words(words) => words,
            Element::Part { .. } => 1,
        }
    }

    /// Computes the new register value from the loaded bytes and the old value.
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

    /// Extracts the bits to store, in the low end of a word.
    pub fn part(self, register: u32) -> u32 {
        match self {
            Element::Part { half: Half::High | Half::HighAlone, .. } => register >> 16,
            _ => register,
        }
    }
}

#[cfg(test)]
mod tests;
