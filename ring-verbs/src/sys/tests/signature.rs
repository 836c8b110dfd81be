//! Types of functions, from Rust to C.

use std::borrow::ToOwned as _;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Newtypes of C's `int`; those of other integers that functions are called with are `unsigned int`.
const INTS: [&str; 3] = ["QpAttrMask", "SrqAttrMask", "ReregMrFlags"];

/// A pointer to a function, or to one that may be NULL, in C. None if it is something else.
///
/// An enumeration is compatible with the integer that holds it, so that its name is not needed.
pub(super) fn in_c(rust: &str) -> Option<String> {
    let rust = match rust.strip_prefix("core::option::Option<") {
        Some(inner) => inner.strip_suffix('>')?,
        None => rust,
    };
    let rust = rust.strip_prefix("unsafe extern \"C\" fn(")?;
    let (arguments, result) = match rust.rsplit_once(") -> ") {
        Some((arguments, result)) => (arguments, value(result)),
        None => (rust.strip_suffix(')')?, "void".to_owned()),
    };
    let arguments: Vec<String> = arguments.split(", ").filter(|name| !name.is_empty()).map(value).collect();
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    Some(format!("{result} (*)({arguments})"))
}

fn value(rust: &str) -> String {
    match rust {
        "*const i8" | "*const u8" => return "const char *".to_owned(),
        "core::ffi::c_void" => return "void".to_owned(),
        "u8" => return "uint8_t".to_owned(),
        "u16" => return "uint16_t".to_owned(),
        "u32" => return "uint32_t".to_owned(),
        "u64" => return "uint64_t".to_owned(),
        "i32" => return "int".to_owned(),
        "usize" => return "size_t".to_owned(),
        "isize" => return "ssize_t".to_owned(),
        _ => {}
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", value(target));
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {} *", value(target));
    }
    let name = rust.rsplit("::").next().unwrap_or(rust);
    if name == "ibv_gid" {
        "union ibv_gid".to_owned()
    } else if name.starts_with(|first: char| !first.is_uppercase()) {
        format!("struct {name}")
    } else if INTS.contains(&name) {
        "int".to_owned()
    } else {
        "unsigned int".to_owned()
    }
}

#[test]
fn functions_are_spelt_as_in_c() {
    let spelt =
        in_c(r#"core::option::Option<unsafe extern "C" fn(*mut a::ibv_qp, u32, *const b::ibv_sge) -> i32>"#);
    assert_eq!(spelt.as_deref(), Some("int (*)(struct ibv_qp *, uint32_t, const struct ibv_sge *)"));
    assert_eq!(in_c(r#"unsafe extern "C" fn()"#).as_deref(), Some("void (*)(void)"));
    assert_eq!(in_c("*mut core::ffi::c_void"), None);
}
