use std::format;

use super::*;
use crate::skip::skip;

#[test]
fn the_limit_is_in_effect_until_it_is_dropped() {
    let (loose, tight) = match (LatencyLimit::hold(90), LatencyLimit::hold(7)) {
        (Ok(loose), Ok(tight)) => (loose, tight),
        (_, refused) => return skip(refused.unwrap_err()),
    };
    assert_eq!((loose.limit_us(), tight.limit_us()), (90, 7));
    assert!(tight.effective_us().unwrap() <= 7);
    // Other programs, and other tests, may hold a lower one.
    let before = loose.effective_us().unwrap();
    drop(tight);
    assert!(loose.effective_us().unwrap() >= before && loose.effective_us().unwrap() <= 90);
}

#[test]
fn a_limit_beyond_what_the_kernel_takes_is_refused() {
    let error = LatencyLimit::hold(2_000_000_001).unwrap_err();
    assert_eq!(error, Error::LatencyLimit { limit_us: 2_000_000_001, source: Errno::INVAL });
    assert!(format!("{error}").contains("2,000,000,000"), "{error}");
}
