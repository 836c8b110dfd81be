use super::*;
use crate::laid_out::LaidOut;

#[test]
fn ticks_do_not_drift() {
    let begin = Instant::now();
    let at = |ms| begin + Duration::from_millis(ms);
    let every = Duration::from_millis(100);
    assert_eq!(next(at(100), every, at(107)), at(200), "a late tick does not move the next one");
    assert_eq!(next(at(100), every, at(430)), at(500), "those that were missed are left out");
    assert_eq!(next(at(100), every, at(99)), at(100));
}
