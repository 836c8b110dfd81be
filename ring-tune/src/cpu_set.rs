//! Sets of CPUs, as the kernel writes them: `0-3,8`.

#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;

use crate::Error;

/// The number of CPUs that a [`CpuSet`] can hold, the most that Linux is built for; CPUs are numbered from 0.
pub const MAX_CPUS: usize = 8_192;

pub(crate) const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// A set of CPUs by their number, below [`MAX_CPUS`]; takes 1 KiB.
///
/// ```
/// use ring_tune::CpuSet;
///
/// let set: CpuSet = "0-2,8".parse()?;
/// assert_eq!(set.len(), 4);
/// assert!(set.contains(8) && !set.contains(3));
/// assert_eq!(set.to_string(), "0-2,8");
/// # Ok::<(), ring_tune::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CpuSet {
    /// One bit a CPU, in the layout of the kernel's affinity mask.
    words: [libc::c_ulong; MAX_CPUS / WORD_BITS],
}

impl CpuSet {
    /// The size of the mask in bytes, as system calls want it.
    pub(crate) const BYTES: usize = MAX_CPUS / 8;

    /// The set of no CPU.
    ///
    /// ```
    /// assert!(ring_tune::CpuSet::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { words: [0; MAX_CPUS / WORD_BITS] }
    }

    /// The set of one CPU.
    ///
    /// # Errors
    ///
    /// [`Error::CpuOutOfRange`] from [`MAX_CPUS`] on.
    ///
    /// ```
    /// assert_eq!(ring_tune::CpuSet::only(3)?.to_string(), "3");
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    pub fn only(cpu: usize) -> Result<Self, Error> {
        let mut set = Self::new();
        set.insert(cpu)?;
        Ok(set)
    }

    /// Adds a CPU.
    ///
    /// # Errors
    ///
    /// [`Error::CpuOutOfRange`] from [`MAX_CPUS`] on.
    ///
    /// ```
    /// let mut set = ring_tune::CpuSet::new();
    /// set.insert(3)?;
    /// set.insert(5)?;
    /// set.remove(3);
    /// assert_eq!(set.iter().collect::<Vec<_>>(), [5]);
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    pub fn insert(&mut self, cpu: usize) -> Result<(), Error> {
        let word =
            self.words.get_mut(cpu / WORD_BITS).ok_or(Error::CpuOutOfRange { cpu, limit: MAX_CPUS })?;
        *word |= 1 << (cpu % WORD_BITS);
        Ok(())
    }

    /// Adds the CPUs from the first to the last, word by word: a long list may name the same range many times.
    fn insert_range(&mut self, first: usize, last: usize) -> Result<(), Error> {
        self.insert(last)?;
        for (place, word) in
            self.words.iter_mut().enumerate().take(last / WORD_BITS + 1).skip(first / WORD_BITS)
        {
            let start = place * WORD_BITS;
            let [low, high] = [first.max(start) - start, last.min(start + WORD_BITS - 1) - start];
            *word |= libc::c_ulong::MAX >> (WORD_BITS - 1 - (high - low)) << low;
        }
        Ok(())
    }

    /// Takes a CPU away; nothing happens where it is not in the set.
    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.words.get_mut(cpu / WORD_BITS) {
            *word &= !(1 << (cpu % WORD_BITS));
        }
    }

    /// Whether the CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / WORD_BITS).is_some_and(|word| word >> (cpu % WORD_BITS) & 1 == 1)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_CPUS).filter(|&cpu| self.contains(cpu))
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The CPUs of both.
    ///
    /// ```
    /// use ring_tune::CpuSet;
    ///
    /// let (one, other): (CpuSet, CpuSet) = ("0-3".parse()?, "2-5".parse()?);
    /// assert_eq!(one.union(&other).to_string(), "0-5");
    /// assert_eq!(one.intersection(&other).to_string(), "2-3");
    /// assert_eq!(one.difference(&other).to_string(), "0-1");
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.with(other, |one, other| one | other)
    }

    /// The CPUs that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.with(other, |one, other| one & other)
    }

    /// The CPUs of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.with(other, |one, other| one & !other)
    }

    /// Whether the other set has every CPU of this one.
    ///
    /// ```
    /// use ring_tune::CpuSet;
    ///
    /// let (few, all): (CpuSet, CpuSet) = ("1".parse()?, "0-3".parse()?);
    /// assert!(few.is_subset(&all) && !all.is_subset(&few));
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    fn with(&self, other: &Self, bits: impl Fn(libc::c_ulong, libc::c_ulong) -> libc::c_ulong) -> Self {
        Self { words: core::array::from_fn(|place| bits(self.words[place], other.words[place])) }
    }

    /// A set from the hexadecimal masks that the kernel writes, 32 bits between commas, the highest first:
    /// `ff,00000003`.
    ///
    /// # Errors
    ///
    /// [`Error::CpuList`] for what is no such mask, [`Error::CpuOutOfRange`] where a CPU from [`MAX_CPUS`] on
    /// is in it.
    ///
    /// ```
    /// assert_eq!(ring_tune::CpuSet::from_mask("1,00000003")?.to_string(), "0-1,32");
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    pub fn from_mask(mask: &str) -> Result<Self, Error> {
        let mut set = Self::new();
        for (place, part) in mask.trim().rsplit(',').enumerate() {
            // `from_str_radix` alone would take a sign.
            let digits = Some(part).filter(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let bits =
                digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or(Error::CpuList)?;
            for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
                set.insert(place * 32 + bit)?;
            }
        }
        Ok(set)
    }
}

impl Default for CpuSet {
    fn default() -> Self {
        Self::new()
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    /// Reads a list as the kernel writes it, `0-3,8`; an empty one is the set of no CPU.
    ///
    /// # Errors
    ///
    /// [`Error::CpuList`] for what is no list, [`Error::CpuOutOfRange`] where it holds a CPU from [`MAX_CPUS`]
    /// on.
    fn from_str(list: &str) -> Result<Self, Error> {
        let mut set = Self::new();
        let list = list.trim();
        if list.is_empty() {
            return Ok(set);
        }
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last] = [number(first)?, number(last)?];
            if first > last {
                return Err(Error::CpuList);
            }
            set.insert_range(first, last)?;
        }
        Ok(set)
    }
}

/// `parse` alone would take a sign.
fn number(text: &str) -> Result<usize, Error> {
    let digits = Some(text.trim()).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or(Error::CpuList)
}

impl FromIterator<usize> for CpuSet {
    /// # Panics
    ///
    /// For a CPU from [`MAX_CPUS`] on.
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu).expect("a CPU below MAX_CPUS");
        }
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match first == last {
                true => write!(formatter, "{separator}{first}")?,
                false => write!(formatter, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CpuSet({self})")
    }
}
