//! The mount table, read line by line through a small buffer.

use core::ffi::CStr;

use crate::sys;

/// Of the calling thread: threads may live in different mount namespaces.
const MOUNT_TABLE: &CStr = c"/proc/thread-self/mountinfo";
const LINE_BYTES: usize = 4096;

/// Shows `accept` the mount point of every file system of one type, until it takes one.
pub(super) fn find_mount<T>(file_system: &[u8], mut accept: impl FnMut(&CStr) -> Option<T>) -> Option<T> {
    let table = sys::open_to_read(MOUNT_TABLE).ok()?;
    let mut lines = Lines::new(|rest| sys::read(&table, rest).unwrap_or(0));
    let mut path = [0; LINE_BYTES];
    while let Some(line) = lines.next() {
        let found = mount_point(line, file_system).and_then(|point| unescape(point, &mut path));
        if let Some(taken) = found.and_then(&mut accept) {
            return Some(taken);
        }
    }
    None
}

/// The fifth field of a line whose first field after the lone hyphen is the type asked for.
fn mount_point<'a>(line: &'a [u8], file_system: &[u8]) -> Option<&'a [u8]> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = fields.nth(4)?;
    fields.find(|field| *field == b"-")?;
    (fields.next()? == file_system).then_some(point)
}

/// Undoes the octal escapes of spaces, tabs, line ends and backslashes.
fn unescape<'a>(field: &[u8], path: &'a mut [u8; LINE_BYTES]) -> Option<&'a CStr> {
    let mut length = 0;
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, behind) = match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] if first == b'\\' => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), behind)
            }
            _ => (first, behind),
        };
        *path.get_mut(length)? = byte;
        length += 1;
        rest = behind;
    }
    *path.get_mut(length)? = 0;
    CStr::from_bytes_with_nul(&path[..=length]).ok()
}

/// Lines from a source of bytes. One that does not fit the buffer is left out.
struct Lines<R> {
    read: R,
    buffer: [u8; LINE_BYTES],
    /// What is buffered and not yet returned.
    start: usize,
    end: usize,
    is_oversized: bool,
}

impl<R: FnMut(&mut [u8]) -> usize> Lines<R> {
    fn new(read: R) -> Self {
        Self { read, buffer: [0; LINE_BYTES], start: 0, end: 0, is_oversized: false }
    }

    /// The next line without its end, until the source has no more.
    fn next(&mut self) -> Option<&[u8]> {
        loop {
            let buffered = &self.buffer[self.start..self.end];
            if let Some(length) = buffered.iter().position(|byte| *byte == b'\n') {
                let start = self.start;
                self.start += length + 1;
                if !core::mem::take(&mut self.is_oversized) {
                    return Some(&self.buffer[start..start + length]);
                }
            } else if !self.fill() {
                return None;
            }
        }
    }

    /// Reads more behind the incomplete line that is buffered.
    fn fill(&mut self) -> bool {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == LINE_BYTES {
            self.is_oversized = true;
            self.end = 0;
        }
        let count = (self.read)(&mut self.buffer[self.end..]);
        self.end += count;
        count > 0
    }
}

#[cfg(test)]
mod tests;
