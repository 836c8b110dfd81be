//! The kernel's tables, read line by line through a small buffer.

pub(crate) const LINE_BYTES: usize = 4096;

/// Lines from a source of bytes. One that does not fit the buffer is left out.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    read: R,
    buffer: [u8; LINE_BYTES],
    /// What is buffered and not yet returned.
    start: usize,
    end: usize,
    is_oversized: bool,
}

impl<R: FnMut(&mut [u8]) -> usize> Lines<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { read, buffer: [0; LINE_BYTES], start: 0, end: 0, is_oversized: false }
    }

    /// The next line without its end, until the source has no more.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
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
