use super::*;
extern crate std;
use std::vec::Vec;

fn lines(text: &[u8], chunk: usize) -> Vec<Vec<u8>> {
    let mut rest = text;
    let mut lines = Lines::new(|buffer: &mut [u8]| {
        let count = chunk.min(buffer.len()).min(rest.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        count
    });
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        found.push(line.to_vec());
    }
    found
}

#[test]
fn lines_come_whole_whatever_the_reads_return() {
    for chunk in [1, 2, 3, 7, 4096] {
        assert_eq!(lines(b"one\n\nthree\n", chunk), [&b"one"[..], b"", b"three"]);
    }
}

#[test]
fn a_line_longer_than_the_buffer_is_left_out() {
    for length in [LINE_BYTES - 1, LINE_BYTES, LINE_BYTES + 1, 3 * LINE_BYTES] {
        let mut text = std::vec![b'x'; length];
        text.extend_from_slice(b"\nnext\n");
        let found = lines(&text, 1000);
        assert_eq!(found.last().unwrap(), b"next");
        assert_eq!(found.len(), if length < LINE_BYTES { 2 } else { 1 });
    }
}
