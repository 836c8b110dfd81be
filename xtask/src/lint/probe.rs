//! The machine code of the hot path: no call, no lock, no fence, no way to a panic.
//!
//! The benchmarks export `try_push` and `try_pop` for a 56-byte message under names of their own, so they are
//! functions of this very program, as the compiler made them for the benchmark.

#[cfg(test)]
mod tests;

use std::process::Command;

use anyhow::Result;

use crate::step::Outcome;
use crate::tools;

const SYMBOLS: [&str; 2] = ["ring_probe_spsc_try_push", "ring_probe_spsc_try_pop"];

/// Disassembles the running program.
pub(super) fn check() -> Result<Outcome> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Outcome::Skipped("the rules are written for x86-64".into()));
    }
    if cfg!(debug_assertions) {
        return Ok(Outcome::Failed("this xtask was built without --release: use `cargo xtask lint`".into()));
    }
    if let Err(reason) = tools::require("objdump", "binutils") {
        return Ok(Outcome::Skipped(reason));
    }
    let program = std::env::current_exe()?;
    let mut objections = Vec::new();
    for symbol in SYMBOLS {
        let output = Command::new("objdump")
            .arg("--no-show-raw-insn")
            .arg(format!("--disassemble={symbol}"))
            .arg(&program)
            .output()?;
        objections.extend(objections_to(symbol, &String::from_utf8_lossy(&output.stdout)));
    }
    Ok(Outcome::of_objections(&objections))
}

/// Objections to one function as `objdump` prints it (AT&T syntax).
fn objections_to(symbol: &str, disassembly: &str) -> Vec<String> {
    let head = format!("<{symbol}>:");
    let body = disassembly.lines().skip_while(|line| !line.ends_with(&head)).skip(1);
    let instructions: Vec<&str> = body
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| Some(line.split_once(":\t")?.1.trim()))
        .collect();
    if !instructions.iter().any(|instruction| mnemonic(instruction).starts_with("ret")) {
        return vec![format!("{symbol} is not in the program, or never returns")];
    }
    instructions
        .iter()
        .filter_map(|instruction| {
            Some(format!("{symbol}: {}: {instruction}", objection(symbol, instruction)?))
        })
        .collect()
}

fn objection(symbol: &str, instruction: &str) -> Option<&'static str> {
    let operands = instruction.split_once(char::is_whitespace).map_or("", |(_, operands)| operands);
    match mnemonic(instruction) {
        "lock" => Some("lock prefix"),
        "mfence" | "lfence" | "sfence" => Some("fence"),
        "xchg" | "xchgb" | "xchgw" | "xchgl" | "xchgq" if operands.contains('(') => Some("locks implicitly"),
        "ud2" | "int3" | "hlt" => Some("way to an abort"),
        "syscall" | "sysenter" | "int" => Some("system call"),
        name if name.contains("call") => Some("call"),
        name if name.starts_with('j') && !stays_within(symbol, operands) => Some("jump out of the function"),
        _ => None,
    }
}

/// Prefixes such as `notrack` and `bnd` are no mnemonics.
fn mnemonic(instruction: &str) -> &str {
    let mut words = instruction.split_whitespace();
    words
        .find(|word| !matches!(*word, "notrack" | "bnd" | "cs" | "ds" | "data16" | "rep" | "repz" | "repnz"))
        .unwrap_or_default()
}

/// Whether a target like `12a4 <symbol+0x34>` lies in the function.
fn stays_within(symbol: &str, operands: &str) -> bool {
    let target = operands.rsplit_once('<').and_then(|(_, target)| target.strip_suffix('>'));
    target.is_some_and(|target| target.split('+').next() == Some(symbol))
}
