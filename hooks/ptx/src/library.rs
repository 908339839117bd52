//! Compiled hooks: the functions and variables of a source.

use crate::{PtxHookError, names};
use flipwave_ptx::{
    Binary, Block, Expression, Function, Instruction, Item, ItemKind, Linkage, Module, Name,
    Number, Operand, Parameter, ScalarType, Space, StatementKind, ValueType,
};
use std::collections::HashMap;

/// The functions and variables of a source, compiled for a target.
#[derive(Clone, Debug, PartialEq)]
pub struct HookLibrary {
    /// Name of the source.
    pub(crate) name: String,
    /// Variables, and functions without linkage. Functions take parameters in registers where they can.
    pub(crate) items: Vec<Item>,
    /// The target that it was compiled for.
    pub(crate) target: Option<Name>,
    /// Version of PTX.
    pub(crate) version: (u32, u32),
    /// Hooks by name.
    hooks: HashMap<Name, Result<Signature, String>>,
}

/// Parameters and results of a hook, as sizes in bits: 32 or 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The parameters, in order.
    pub parameters: Vec<u32>,
    /// The results: more than one for a structure of several words of 64 bits, in order.
    pub results: Vec<u32>,
}

impl HookLibrary {
    /// Prepares the functions of a compiled source.
    ///
    /// # Errors
    /// [`PtxHookError::Unsupported`] for shared memory, and for functions without code.
    pub fn new(name: &str, module: Module) -> Result<HookLibrary, PtxHookError> {
        let unsupported =
            |reason: String| PtxHookError::Unsupported { source_name: name.to_owned(), reason };
        let version = module.version().unwrap_or_default();
        let target = target_of(&module).map(Name::from);
        let mut called = Vec::new();
        let mut items = Vec::new();
        for mut item in module.items {
            match &mut item.kind {
                ItemKind::Variable(declaration) => {
                    if declaration.space == Space::Shared {
                        let reason = "hooks cannot have variables in shared memory";
                        return Err(unsupported(reason.to_owned()));
                    }
                    // Drivers find only visible variables by their names.
                    declaration.linkage =
                        declaration.linkage.filter(|linkage| *linkage == Linkage::Visible);
                }
                ItemKind::Function(function) => {
                    if let Some(body) = &mut function.body {
                        names::of_block(body, &mut |name| called.push(name.clone()));
                    }
                    let is_external = function.linkage == Some(Linkage::Extern);
                    if function.body.is_none() && is_external {
                        let reason =
                            format!("hooks cannot call `{}`, which has no code", function.name);
                        return Err(unsupported(reason));
                    }
                    function.linkage = None;
                }
                ItemKind::Alias(_) => {}
                _ => continue,
            }
            items.push(item);
        }
        let mut hooks = HashMap::new();
        for item in &mut items {
            let ItemKind::Function(function) = &mut item.kind else { continue };
            if function.body.is_none() {
                continue;
            }
            let signature = if called.contains(&function.name) {
                Err("other functions of the source call it; call a static function instead"
                    .to_owned())
            } else {
                pass_in_registers(function)
            };
            hooks.insert(function.name.clone(), signature);
        }
        Ok(HookLibrary { name: name.to_owned(), items, target, version, hooks })
    }

    /// Names of the variables in device memory.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let declarations = self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Variable(declaration) => Some(&declaration.declarators),
            _ => None,
        });
        declarations.flatten().map(|declarator| &*declarator.name)
    }

    /// Parameters and result of a hook.
    ///
    /// # Errors
    /// [`PtxHookError::NoFunction`], and [`PtxHookError::Call`] for functions that cannot be hooks.
    pub fn signature(&self, function: &str) -> Result<&Signature, PtxHookError> {
        match self.hooks.get(function) {
            Some(Ok(signature)) => Ok(signature),
            Some(Err(reason)) => {
                Err(PtxHookError::Call { function: function.to_owned(), reason: reason.clone() })
            }
            None => {
                let mut present: Vec<String> =
                    self.hooks.keys().map(|name| name.to_string()).collect();
                present.sort();
                let (source_name, function) = (self.name.clone(), function.to_owned());
                Err(PtxHookError::NoFunction { source_name, function, present })
            }
        }
    }
}

/// The target of a module: `sm_80`.
pub(crate) fn target_of(module: &Module) -> Option<&str> {
    module.targets().find(|target| target.starts_with("sm_"))
}

/// Number of a target: 80 for `sm_80`.
pub(crate) fn number_of(target: &str) -> Option<u32> {
    target.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}

/// Makes a function take its parameters in registers, as PTX permits for device functions. Parameters in
/// memory would need space in the caller's frame, and move the variables of functions that it calls.
fn pass_in_registers(function: &mut Function) -> Result<Signature, String> {
    let size = |parameter: &Parameter| {
        let bits = parameter.kind.scalar.bits();
        let is_scalar = parameter.kind.elements == 1 && parameter.dimensions.is_empty();
        if is_scalar && matches!(bits, 32 | 64) {
            Ok(bits)
        } else {
            Err("parameters of hooks have at most 64 bits and are no structures; results are no \
                 structures except of words of 64 bits"
                .to_owned())
        }
    };
    let parameters = function.parameters.as_deref().unwrap_or_default();
    let parameters = parameters.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let mut words = HashMap::new();
    if let [structure] = &function.results[..]
        && let Some(count) = words_of(structure)
    {
        let (name, whole) = (structure.name.clone(), structure.clone());
        let part = |number: u64| Parameter {
            name: format!("{name}_{number}").into(),
            kind: ValueType { scalar: ScalarType::B64, elements: 1 },
            dimensions: Vec::new(),
            ..whole.clone()
        };
        function.results = (0..count).map(part).collect();
        words.insert(name, function.results.iter().map(|word| word.name.clone()).collect());
    }
    let results = function.results.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let mut passed: HashMap<Name, u32> = HashMap::new();
    for parameter in function.parameters.iter_mut().flatten().chain(&mut function.results) {
        let bits = parameter.kind.scalar.bits();
        passed.insert(parameter.name.clone(), bits);
        parameter.space = Space::Reg;
        parameter.kind.scalar = if bits == 64 { ScalarType::B64 } else { ScalarType::B32 };
        parameter.alignment = None;
        parameter.pointer = None;
    }
    let kinds = register_kinds(function);
    if let Some(body) = &mut function.body {
        name_words(body, &words);
        replace_accesses(body, &passed, &kinds)?;
    }
    Ok(Signature { parameters, results })
}

/// Number of words of 64 bits in a structure; `None` for other results.
fn words_of(result: &Parameter) -> Option<u64> {
    let [Some(bytes)] = result.dimensions[..] else { return None };
    let is_bytes = result.kind.scalar == ScalarType::B8 && result.kind.elements == 1;
    (is_bytes && bytes > 8 && bytes.is_multiple_of(8)).then_some(bytes / 8)
}

/// Makes stores of a structure's words name the word: `[result_1]` instead of `[result+8]`.
fn name_words(block: &mut Block, words: &HashMap<Name, Vec<Name>>) {
    for statement in &mut block.statements {
        match &mut statement.kind {
            StatementKind::Block(inner) => name_words(inner, words),
            StatementKind::Instruction(inst) => {
                for operand in &mut inst.operands {
                    let Operand::Address(parts) = operand else { continue };
                    let (name, offset) = match &parts[..] {
                        [Operand::Value(Expression::Symbol(name))] => (name, 0),
                        [Operand::Value(Expression::Binary(Binary::Add, sum))] => match &**sum {
                            [
                                Expression::Symbol(name),
                                Expression::Number(Number::Integer { value, .. }),
                            ] => (name, *value),
                            _ => continue,
                        },
                        _ => continue,
                    };
                    let word = words.get(name).and_then(|words| words.get((offset / 8) as usize));
                    if let Some(word) = word.filter(|_| offset.is_multiple_of(8)) {
                        *parts = vec![Operand::symbol(word)];
                    }
                }
            }
            _ => {}
        }
    }
}

/// Sizes of the registers of a function in bits, by name; prefixes for numbered ones.
fn register_kinds(function: &Function) -> Vec<(Name, bool, u32)> {
    let statements = function.body.iter().flat_map(|body| &body.statements);
    let declarations = statements.filter_map(|statement| match &statement.kind {
        StatementKind::Declaration(declaration) if declaration.space == Space::Reg => {
            Some(declaration)
        }
        _ => None,
    });
    let declarators = declarations.flat_map(|declaration| {
        let bits = declaration.kind.scalar.bits();
        declaration
            .declarators
            .iter()
            .map(move |declarator| (declarator.name.clone(), declarator.count.is_some(), bits))
    });
    declarators.collect()
}

/// Replaces accesses to parameters by moves.
fn replace_accesses(
    block: &mut Block,
    passed: &HashMap<Name, u32>,
    kinds: &[(Name, bool, u32)],
) -> Result<(), String> {
    for statement in &mut block.statements {
        match &mut statement.kind {
            StatementKind::Block(inner) => replace_accesses(inner, passed, kinds)?,
            StatementKind::Instruction(inst) => {
                if let Some(replaced) = access(inst, passed, kinds) {
                    **inst = replaced?;
                    continue;
                }
                let mut used = None;
                names::of_instruction(inst, &mut |name| {
                    if passed.contains_key(name) {
                        used = Some(name.clone());
                    }
                });
                if let Some(name) = used {
                    return Err(format!("the address of parameter `{name}` is taken by `{inst}`"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The move for a load or store of a parameter; `None` for other instructions.
fn access(
    inst: &Instruction,
    passed: &HashMap<Name, u32>,
    kinds: &[(Name, bool, u32)],
) -> Option<Result<Instruction, String>> {
    let is_load = match inst.opcode() {
        "ld" => true,
        "st" => false,
        _ => return None,
    };
    if !inst.modifiers().any(|modifier| modifier == "param") {
        return None;
    }
    let [first, second] = &inst.operands[..] else { return None };
    let (place, register) = if is_load { (second, first) } else { (first, second) };
    let Operand::Address(parts) = place else { return None };
    let [Operand::Value(Expression::Symbol(name))] = &parts[..] else { return None };
    let bits = *passed.get(name)?;
    let unsupported = || Some(Err(format!("`{inst}` accesses a part of a parameter")));
    let Some(kind) = inst.modifiers().find_map(ScalarType::parse) else { return unsupported() };
    let parameter = Operand::symbol(name);
    let plain = |to: &Operand, from: &Operand| Instruction {
        guard: inst.guard.clone(),
        name: format!("mov.b{bits}").into(),
        operands: vec![to.clone(), from.clone()],
    };
    if !is_load {
        let is_whole = kind.bits() == bits;
        return if is_whole { Some(Ok(plain(&parameter, register))) } else { unsupported() };
    }
    let Some(width) = register.as_symbol().and_then(|name| bits_of(name, kinds)) else {
        return unsupported();
    };
    if kind.bits() == bits && width == bits {
        return Some(Ok(plain(register, &parameter)));
    }
    let sign = if kind.is_signed() { 's' } else { 'u' };
    let name = format!("cvt.{sign}{width}.{sign}{}", kind.bits());
    Some(Ok(Instruction {
        guard: inst.guard.clone(),
        name: name.into(),
        operands: vec![register.clone(), parameter],
    }))
}

/// Size of a register in bits.
fn bits_of(name: &str, kinds: &[(Name, bool, u32)]) -> Option<u32> {
    let found =
        kinds.iter().find(|(declared, is_numbered, _)| match name.strip_prefix(&**declared) {
            Some(rest) if *is_numbered => {
                !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit())
            }
            Some(rest) => rest.is_empty(),
            None => false,
        });
    found.map(|(_, _, bits)| *bits)
}
