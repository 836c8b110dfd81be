//! What a file of the kernel is set to.

use ring_tune::CpuSet;

/// What to write for a file to say what it says now: its text, or the chosen word of `always [madvise] never`.
pub(super) fn of(text: &str) -> &str {
    let text = text.trim();
    let mut chosen = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')));
    match (chosen.next(), chosen.next()) {
        (Some(word), None) if !word.is_empty() => word,
        _ => text,
    }
}

/// Whether two settings mean the same: the kernel writes `0-1` for `0,1`, and pads masks with zeroes.
pub(super) fn same(one: &str, other: &str) -> bool {
    if one.split_whitespace().eq(other.split_whitespace()) {
        return true;
    }
    // First, since the mask `1,00000000` could be read as a list.
    if let (Some(one), Some(other)) = (mask(one), mask(other)) {
        return one == other;
    }
    matches!((one.parse::<CpuSet>(), other.parse::<CpuSet>()), (Ok(one), Ok(other)) if one == other)
}

/// A mask as the kernel writes it, words of 32 bits with commas between them, without the zeroes at its front.
fn mask(text: &str) -> Option<String> {
    let mut words = text.split(',');
    let first = words.next()?;
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mask = !first.is_empty()
        && first.len() <= 8
        && is_hex(first)
        && words.all(|word| word.len() == 8 && is_hex(word));
    is_mask.then(|| text.replace(',', "").trim_start_matches('0').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_the_setting() {
        let settings = ["always [madvise] never\n", "60\n", "[off]", "a [b] [c]", "a [] b", ""];
        assert_eq!(settings.map(of), ["madvise", "60", "off", "a [b] [c]", "a [] b", ""]);
    }

    #[test]
    fn notations_of_one_value_are_the_same() {
        for (one, other) in
            [("0,1", "0-1"), ("4\t4 1", "4 4 1"), ("f", "0000000F"), ("1,00000000", "00000001,00000000")]
        {
            assert!(same(one, other), "{one} and {other}");
        }
        for (one, other) in [
            ("0", "1"),
            ("1,1", "11"),
            ("00000001,00000000", "00000000,00000001"),
            ("n/a", "0"),
            ("", "0"),
            ("madvise", "never"),
        ] {
            assert!(!same(one, other), "{one} and {other}");
        }
    }
}
