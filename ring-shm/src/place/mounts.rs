//! The mount table.

use core::ffi::CStr;

use crate::lines::{LINE_BYTES, Lines};
use crate::{Errno, sys};

/// Of the calling thread: threads may live in different mount namespaces.
const MOUNT_TABLE: &CStr = c"/proc/thread-self/mountinfo";

/// Shows `accept` the mount point of every file system of one type, until it takes one. Without /proc there is none.
pub(super) fn find_mount<T>(
    file_system: &[u8],
    mut accept: impl FnMut(&CStr) -> Option<T>,
) -> Result<Option<T>, Errno> {
    let table = match sys::open_to_read(MOUNT_TABLE) {
        Ok(table) => table,
        Err(error) if error.is_exhaustion() => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut lines = Lines::new(|rest| sys::read(&table, rest).unwrap_or(0));
    let mut path = [0; LINE_BYTES];
    while let Some(line) = lines.next() {
        let found = mount_point(line, file_system).and_then(|point| unescape(point, &mut path));
        if let Some(taken) = found.and_then(&mut accept) {
            return Ok(Some(taken));
        }
    }
    Ok(None)
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

#[cfg(test)]
mod tests;
