//! The declarations against the headers that are installed.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::{String, ToString as _};
use std::vec::Vec;
use std::{env, format, fs, println, process};

use super::signature;
use super::table::{self, Growth, Layout};

/// What the compiler is asked, in C, and what it ought to answer.
struct Question {
    name: String,
    expressions: Vec<String>,
    expected: Vec<i64>,
}

#[test]
#[cfg_attr(miri, ignore = "it runs a compiler")]
fn sizes_offsets_functions_and_constants_are_those_of_the_installed_headers() {
    if let Some(reason) = why_not() {
        println!("skipped: {reason}");
        return;
    }
    let layouts = table::layouts();
    let mut questions: Vec<Question> = layouts.iter().flat_map(of_layout).collect();
    questions.extend(table::exported().into_iter().map(|(name, rust_type)| {
        of_signature(name, &format!("&{name}"), &signature::in_c(rust_type).expect("each is a function"))
    }));
    questions.extend(table::constants().into_iter().map(|(name, value)| Question {
        expressions: Vec::from([name.clone()]),
        expected: Vec::from([value]),
        name,
    }));

    let answers = run(&program(&questions));
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), questions.len());
    let differences: Vec<String> = (questions.iter().zip(answers))
        .map(|(question, answer)| (question, answer, numbers(&question.expected)))
        .filter(|(_, answer, expected)| answer != expected)
        .map(|(question, answer, expected)| format!("{}: {answer} in C, {expected} here", question.name))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{} structures and unions, {} answers", layouts.len(), questions.len());
}

/// Why there is nothing to compare with.
fn why_not() -> Option<&'static str> {
    let Ok(machine) = Command::new("cc").arg("-dumpmachine").output() else {
        return Some("no C compiler: apt-get install gcc libc6-dev");
    };
    if !String::from_utf8_lossy(&machine.stdout).starts_with(env::consts::ARCH) {
        return Some("the C compiler is for another machine");
    }
    let has_header = Command::new("cc")
        .args(["-E", "-include", "infiniband/verbs.h", "-x", "c", "/dev/null"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    (!has_header).then_some("no infiniband/verbs.h: apt-get install libibverbs-dev")
}

/// Size and alignment of a structure, offset and size of each field.
///
/// Structures that later versions make longer may be longer; one that grows at its beginning is measured from its
/// last field.
fn of_layout(layout: &Layout) -> Vec<Question> {
    let c = layout.c_name;
    let mut questions = Vec::from([Question {
        name: format!("size and alignment of {c}"),
        expressions: Vec::from([
            match layout.growth {
                Growth::Never => format!("sizeof({c})"),
                _ => format!("sizeof({c}) < {0} ? sizeof({c}) : {0}", layout.size),
            },
            format!("_Alignof({c})"),
        ]),
        expected: Vec::from([number(layout.size), number(layout.align)]),
    }]);
    let last = layout.fields.last().expect("there is a field");
    questions.extend(layout.fields.iter().map(|field| {
        let path = field.c_path;
        let (offset, expected) = match layout.growth {
            Growth::AtBeginning => {
                let offset = format!("offsetof({c}, {}) - offsetof({c}, {path})", last.c_path);
                (offset, last.offset - field.offset)
            }
            _ => (format!("offsetof({c}, {path})"), field.offset),
        };
        Question {
            name: format!("offset and size of {path} in {c}"),
            expressions: Vec::from([offset, format!("sizeof((({c} *)0)->{path})")]),
            expected: Vec::from([number(expected), number(field.size)]),
        }
    }));
    questions.extend(layout.fields.iter().filter_map(|field| {
        let signature = signature::in_c(field.rust_type)?;
        let path = field.c_path;
        Some(of_signature(&format!("{path} in {c}"), &format!("(({c} *)0)->{path}"), &signature))
    }));
    questions
}

/// Whether a pointer to a function has this type in C, which has two types of 64 bits: `uint64_t` and `__u64`.
fn of_signature(name: &str, pointer: &str, signature: &str) -> Question {
    let is = |signature: &str| format!("__builtin_types_compatible_p(__typeof__({pointer}), {signature})");
    Question {
        name: format!("whether {name} is {signature}"),
        expressions: Vec::from([format!(
            "{} || {}",
            is(signature),
            is(&signature.replace("uint64_t", "__u64"))
        )]),
        expected: Vec::from([1]),
    }
}

fn program(questions: &[Question]) -> String {
    let mut program =
        "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\nint main(void) {\n"
            .to_string();
    for question in questions {
        for (index, expression) in question.expressions.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            program += &format!("printf(\"{space}%lld\", (long long)({expression}));\n");
        }
        program += "puts(\"\");\n";
    }
    program + "return 0;\n}\n"
}

/// Compiles a program and returns what it prints.
fn run(program: &str) -> String {
    let binary = env::temp_dir().join(format!("ring-verbs-header-{}", process::id()));
    let mut compiler = Command::new("cc")
        .args(["-std=gnu11", "-O0", "-x", "c", "-", "-o"])
        .arg(&binary)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("there is a compiler");
    compiler.stdin.take().expect("it is a pipe").write_all(program.as_bytes()).expect("the compiler reads");
    let compiled = compiler.wait_with_output().expect("the compiler ends");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&binary).output();
    fs::remove_file(&binary).expect("the compiler has written it");
    let output = output.expect("the program runs");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("it prints numbers")
}

fn numbers(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

fn number(size: usize) -> i64 {
    i64::try_from(size).expect("structures are small")
}
