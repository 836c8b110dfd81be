//! A recorder as bytes, for another process to merge.
//!
//! | offset | what, in little-endian order |
//! |---|---|
//! | 0 | the format, `ringrec1` |
//! | 8 | how many samples were rejected |
//! | 16, 24 | sum and maximum in ns, as floating point |
//! | 32 | for each bucket that counts something, in ascending order: a value in ps and a count |

use std::vec::Vec;

use super::{LARGEST_PS, MOST_SAMPLES, Recorder};
use crate::Error;

const FORMAT: &[u8; 8] = b"ringrec1";

/// What an entry of a bucket takes.
const ENTRY: usize = 16;

impl Recorder {
    /// What was recorded, for [`from_bytes`](Self::from_bytes) in another process; 16 bytes for each of the buckets that
    /// are in use, mostly a few hundred.
    ///
    /// ```
    /// use ring_tune::Recorder;
    ///
    /// let mut recorder = Recorder::new();
    /// recorder.record(41.5);
    /// let copy = Recorder::from_bytes(&recorder.to_bytes())?;
    /// assert_eq!(copy.summary(), recorder.summary());
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.to_vec();
        bytes.extend(self.rejected.to_le_bytes());
        bytes.extend(self.sum_ns.to_le_bytes());
        bytes.extend(self.max_ns.to_le_bytes());
        for bucket in self.histogram.iter_recorded() {
            bytes.extend(bucket.value_iterated_to().to_le_bytes());
            bytes.extend(bucket.count_at_value().to_le_bytes());
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Whatever the bytes are, it takes the memory of one recorder.
    ///
    /// # Errors
    ///
    /// [`Error::RecorderBytes`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).ok_or(Error::RecorderBytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut recorder = Self::new();
        let rest = bytes.strip_prefix(FORMAT)?;
        let (rejected, rest) = rest.split_first_chunk()?;
        let (sum, rest) = rest.split_first_chunk()?;
        let (max, entries) = rest.split_first_chunk()?;
        recorder.rejected = u64::from_le_bytes(*rejected);
        recorder.sum_ns = f64::from_le_bytes(*sum);
        recorder.max_ns = f64::from_le_bytes(*max);
        if entries.len() % ENTRY != 0 || !(recorder.sum_ns >= 0.0 && recorder.max_ns >= 0.0) {
            return None;
        }
        let mut total: u64 = 0;
        let mut last = None;
        for entry in entries.chunks_exact(ENTRY) {
            let (value, count) = entry.split_first_chunk()?;
            let value = u64::from_le_bytes(*value);
            let count = u64::from_le_bytes(*count.first_chunk()?);
            total = total.checked_add(count).filter(|&total| total <= MOST_SAMPLES)?;
            // The last bucket ends somewhat above the largest value.
            if count == 0 || value > LARGEST_PS + LARGEST_PS / 100 || last.is_some_and(|last| last >= value) {
                return None;
            }
            last = Some(value);
            recorder.histogram.saturating_record_n(value, count);
        }
        Some(recorder)
    }
}
