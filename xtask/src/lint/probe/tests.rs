use super::*;

/// As objdump 2.40 prints a push.
const GOOD: &str = "
target/release/xtask:     file format elf64-x86-64


Disassembly of section .text:

000000000004a2c0 <ring_probe_spsc_try_push>:
   4a2c0:\tmov    0x18(%rdi),%rax
   4a2c4:\tcmp    0x20(%rdi),%rax
   4a2c8:\tje     4a2f0 <ring_probe_spsc_try_push+0x30>
   4a2ca:\tmovups (%rsi),%xmm0
   4a2cd:\txchg   %ax,%ax
   4a2cf:\tmov    %rcx,0x38(%rdx)
   4a2d3:\trep movsq %ds:(%rsi),%es:(%rdi)
   4a2d6:\tret
   4a2f0:\tmov    $0x1,%eax
   4a2f5:\tjmp    4a2d6 <ring_probe_spsc_try_push+0x16>
   4a2fa:\tcs nopw 0x0(%rax,%rax,1)
";

fn with(instruction: &str) -> Vec<String> {
    let text = GOOD.replace("movups (%rsi),%xmm0", instruction);
    assert_ne!(text, GOOD);
    objections_to("ring_probe_spsc_try_push", &text)
}

#[test]
fn stores_loads_and_jumps_within_are_good() {
    assert_eq!(objections_to("ring_probe_spsc_try_push", GOOD), [""; 0]);
    assert_eq!(with("cmpxchg %rcx,(%rdx)"), [""; 0], "without the prefix it is an ordinary instruction");
}

#[test]
fn what_costs_or_panics_is_not() {
    for (instruction, what) in [
        ("call   4b000 <memcpy@plt>", "call"),
        ("call   *0x2f3a(%rip)        # 7d208 <_GLOBAL_OFFSET_TABLE_+0x60>", "call"),
        ("notrack call *%rax", "call"),
        ("lock cmpxchg %rcx,(%rdx)", "lock prefix"),
        ("lock addl $0x0,(%rsp)", "lock prefix"),
        ("xchg   %rax,(%rdx)", "locks implicitly"),
        ("xchgq  $0x0,(%rdx)", "locks implicitly"),
        ("mfence", "fence"),
        ("lfence", "fence"),
        ("sfence", "fence"),
        ("ud2", "way to an abort"),
        ("syscall", "system call"),
        ("jmp    4c000 <_ZN4core9panicking5panic17h0E>", "jump out"),
        ("jae    4c000 <ring_probe_spsc_try_push.cold>", "jump out"),
        ("jmp    *%rax", "jump out"),
    ] {
        let objections = with(instruction);
        assert_eq!(objections.len(), 1, "{instruction}: {objections:?}");
        assert!(objections[0].contains(what), "{instruction}: {objections:?}");
    }
}

#[test]
fn a_function_that_is_not_there() {
    assert_eq!(objections_to("ring_probe_spsc_try_pop", GOOD).len(), 1);
    assert_eq!(objections_to("ring_probe_spsc_try_push", "").len(), 1);
}

#[test]
fn the_next_function_is_not_looked_at() {
    let text = format!("{GOOD}\n000000000004a300 <other>:\n   4a300:\tcall   4b000 <memcpy@plt>\n");
    assert_eq!(objections_to("ring_probe_spsc_try_push", &text), [""; 0]);
}
