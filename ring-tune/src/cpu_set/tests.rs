use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn a_set_holds_the_cpus_of_its_bits() {
    for cpu in [0, 1, WORD_BITS - 1, WORD_BITS, WORD_BITS + 1, MAX_CPUS - 1] {
        let set = CpuSet::only(cpu).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [cpu]);
        assert_eq!(set.len(), 1);
    }
    assert_eq!(CpuSet::new().iter().next(), None);
    assert_eq!(CpuSet::only(MAX_CPUS), Err(Error::CpuOutOfRange { cpu: MAX_CPUS, limit: MAX_CPUS }));
}

#[test]
fn what_is_no_list_is_refused() {
    for list in ["a", "1,", ",1", "3-1", "1-", "-1", "0x1", "1 2", "+1", "1-+3", "²", "99999999999999999999"]
    {
        assert_eq!(list.parse::<CpuSet>(), Err(Error::CpuList), "{list}");
    }
    assert!(matches!("0-8192".parse::<CpuSet>(), Err(Error::CpuOutOfRange { cpu: 8_192, .. })));
    assert!(matches!("0-18446744073709551615".parse::<CpuSet>(), Err(Error::CpuOutOfRange { .. })));
    assert_eq!("\n".parse::<CpuSet>(), Ok(CpuSet::new()));
    for mask in ["", "g", "1,,2", "100000000", "+1", "-1"] {
        assert_eq!(CpuSet::from_mask(mask), Err(Error::CpuList), "{mask}");
    }
    let beyond = std::format!("1{}", ",00000000".repeat(MAX_CPUS / 32));
    assert!(matches!(CpuSet::from_mask(&beyond), Err(Error::CpuOutOfRange { cpu: MAX_CPUS, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_list_that_is_written_reads_the_same(cpus in prop::collection::btree_set(0..MAX_CPUS, 0..60)) {
        let set: CpuSet = cpus.iter().copied().collect();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), cpus.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
    }

    #[test]
    fn a_range_holds_all_between_its_ends(one in 0..MAX_CPUS, other in 0..MAX_CPUS) {
        let [first, last] = [one.min(other), one.max(other)];
        let set: CpuSet = std::format!("{first}-{last}").parse().unwrap();
        prop_assert!(set.iter().eq(first..=last));
        let set: CpuSet = std::format!("{first}-{last},{one}-{one},{other}").parse().unwrap();
        prop_assert!(set.iter().eq(first..=last));
    }

    #[test]
    fn any_text_is_a_set_or_an_error(text in ".{0,40}") {
        let _ = text.parse::<CpuSet>();
        let _ = CpuSet::from_mask(&text);
    }
}
