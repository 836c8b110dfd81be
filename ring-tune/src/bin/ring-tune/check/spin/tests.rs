use super::*;
use crate::counters::field;

#[test]
fn what_was_missed_adds_up() {
    let cpu = ring_tune::allowed_cpus().unwrap().iter().next().unwrap();
    let text = gaps(&cpu.to_string()).unwrap();
    let number = |name| field(&text, name).unwrap().parse::<f64>().unwrap();
    let (spun, count, lost, longest) =
        (number("spun-ns"), number("gaps"), number("lost-ns"), number("longest-ns"));
    assert!(spun >= SPIN_NS, "{text}");
    assert!(lost <= spun + 1.0 && longest <= lost + 1.0, "{text}");
    // Each gap is longer than the shortest that counts, and none is longer than the longest.
    assert!(lost >= count * GAP_NS - 1.0 && lost <= count * longest + count + 1.0, "{text}");
}

#[test]
fn a_cpu_that_is_not_there_has_a_reason() {
    let error = gaps("1023").unwrap_err();
    assert!(matches!(error, Unread::Strange { .. }), "{error:?}");
    assert!(error.to_string().contains("CPU 1023"), "{error}");
    assert!(gaps("one").unwrap_err().is_absent());
}
