use std::path::Path;

use super::*;

const TABLE: &str = "//! | edge | carries |\n//! |---|---|\n//! | R1 → A1 | the message |\n";

const PUSH: &str = "
    impl Producer {
        fn try_push(&self) {
            // ORDERING: Release (R1): publishes the payload written above; pairs with A1 in
            // Consumer::try_pop.
            self.word.store(1, Ordering::Release);
        }
    }";

const POP: &str = "
    impl Consumer {
        fn try_pop(&self) {
            // ORDERING: Acquire (A1): the payload; pairs with R1 in Producer::try_push.
            self.word.load(Ordering::Acquire);
        }
    }";

/// Objections to a ring in the given parts.
fn check_ring(facade: &str, producer: &str, consumer: &str) -> Vec<String> {
    let parts = [("spsc.rs", facade), ("spsc/producer.rs", producer), ("spsc/consumer.rs", consumer)];
    check(&parts.map(|(path, text)| Source::parse(Path::new(path), text).unwrap()))
}

/// Objections to one statement with what stands above it.
fn check_statement(text: &str) -> Vec<String> {
    check(&[Source::parse(Path::new("spsc.rs"), &format!("fn f() {{\n{text}\n}}")).unwrap()])
}

#[track_caller]
fn assert_objection(objections: &[String], expected: &str) {
    assert!(objections.iter().any(|objection| objection.contains(expected)), "{objections:#?}");
}

#[test]
fn an_edge_with_both_ends_is_good() {
    assert_eq!(check_ring(TABLE, PUSH, POP), [""; 0]);
}

#[test]
fn relaxed_with_a_reason_is_good() {
    assert_eq!(check_statement("// ORDERING: Relaxed: only this side writes it.\nx.load(Relaxed);"), [""; 0]);
}

#[test]
fn an_access_without_its_comment() {
    assert_objection(&check_statement("x.load(Ordering::Relaxed);"), "spsc.rs:2: no `// ORDERING: Relaxed");
    assert_objection(
        &check_statement("// ORDERING: Relaxed: far away.\n\nx.load(Ordering::Relaxed);"),
        "no `// ORDERING: Relaxed",
    );
    assert_objection(
        &check_statement("// ORDERING: Relaxed: only we write.\nx.store(1, Ordering::Release);"),
        "no `// ORDERING: Release",
    );
}

#[test]
fn each_ordering_of_an_exchange_has_its_own() {
    let exchange = "x.compare_exchange(1, 2, Ordering::Acquire, Ordering::Relaxed);";
    let acquire = "// ORDERING: Acquire (A1): the payload; pairs with R1 in Producer::try_push.\n";
    let relaxed = "// ORDERING: Relaxed on failure: nothing is read.\n";
    let missing = |comments: &str| {
        let objections = check_statement(&format!("{comments}{exchange}"));
        objections.iter().filter(|objection| objection.contains("no `// ORDERING")).count()
    };
    assert_eq!(missing(""), 2);
    assert_eq!(missing(acquire), 1);
    assert_eq!(missing(&format!("{acquire}{relaxed}")), 0);
}

#[test]
fn a_reason_is_asked_for() {
    assert_objection(&check_statement("// ORDERING: Relaxed.\nx.load(Relaxed);"), "does not say why");
    assert_objection(&check_statement("// ORDERING: Relaxed:\nx.load(Relaxed);"), "does not say why");
}

#[test]
fn an_edge_is_labelled_and_says_where_its_other_end_is() {
    let release = |comment: &str| check_statement(&format!("// ORDERING: {comment}\nx.store(1, Release);"));
    assert_objection(&release("Release: the message written above."), "has no label");
    assert_objection(&release("Release (R1): the message above."), "what it pairs with");
    assert_objection(&release("Release (R1): the message; pairs with A1."), "where its partner is");
    assert_objection(&release("Release (A1): the message; pairs with A1 in C::f."), "no label for Release");
}

#[test]
fn a_partner_that_is_missing_or_does_not_answer() {
    assert_objection(&check_ring(TABLE, PUSH, ""), "pairs with A1, which no ORDERING comment in spsc");
    let wrong = POP.replace("pairs with R1", "pairs with R2");
    assert_objection(&check_ring(TABLE, PUSH, &wrong), "pairs with A1, which does not name R1 back");
}

#[test]
fn a_partner_in_another_function() {
    let renamed = POP.replace("fn try_pop", "fn poll");
    assert_objection(&check_ring(TABLE, PUSH, &renamed), "A1 is in no function try_pop");
}

#[test]
fn each_place_at_an_end_is_named() {
    let peek = POP.replace("try_pop", "try_peek");
    let both = format!("{POP}{peek}");
    assert_objection(
        &check_ring(TABLE, PUSH, &both),
        "spsc/producer.rs:6: pairs with A1, which is also in try_peek: name it",
    );
    let named = PUSH.replace("Consumer::try_pop.", "Consumer::try_pop and Consumer::try_peek.");
    assert_eq!(check_ring(TABLE, &named, &both), [""; 0]);
}

#[test]
fn another_folder_vouches_for_nothing() {
    let check_beside_a_ring = |parts: [(&str, &str); 2]| {
        let ring = [("bytes.rs", TABLE), ("bytes/producer.rs", PUSH), ("bytes/consumer.rs", POP)];
        let parts = ring.into_iter().chain(parts);
        check(&Vec::from_iter(parts.map(|(path, text)| Source::parse(Path::new(path), text).unwrap())))
    };
    assert_objection(
        &check_beside_a_ring([("spsc.rs", TABLE), ("spsc/producer.rs", PUSH)]),
        "spsc/producer.rs:6: pairs with A1, which no ORDERING comment in spsc has",
    );
    let poll = POP.replace("try_pop", "poll").replace("pairs with R1", "pairs with R2");
    let objections =
        check_beside_a_ring([("spsc.rs", &format!("{TABLE}{PUSH}")), ("spsc/consumer.rs", &poll)]);
    assert_objection(&objections, "pairs with A1, which does not name R1 back");
    assert_objection(&objections, "A1 is in no function try_pop");
}

#[test]
fn the_table_and_the_code_agree() {
    assert_objection(&check_ring("//! No table.", PUSH, POP), "table of edges in spsc.rs does not have R1");
    let more = format!("{TABLE}//! | R2 → A2 | credit |\n");
    assert_objection(&check_ring(&more, PUSH, POP), "the table of edges has A2, which no access has");
}

#[test]
fn a_label_has_one_ordering() {
    let more = PUSH.replace("try_push", "push_all").replace("Release", "AcqRel");
    assert_objection(&check_ring(TABLE, &format!("{PUSH}{more}"), POP), "R1 stands for different orderings");
    let again = PUSH.replace("try_push", "push_all");
    let named = POP.replace("Producer::try_push.", "Producer::try_push and Producer::push_all.");
    assert_eq!(check_ring(TABLE, &format!("{PUSH}{again}"), &named), [""; 0], "one edge, two places");
}

#[test]
fn sequential_consistency_is_for_fences() {
    let comment = "// ORDERING: SeqCst (F1): store before load; pairs with F1 in Spsc::f.\n";
    assert_objection(&check_statement(&format!("{comment}x.load(Ordering::SeqCst);")), "for fences only");
    let fence = format!("//! | F1 ↔ F1 | both see |\nfn f() {{\n{comment}fence(Ordering::SeqCst);\n}}");
    assert_eq!(check(&[Source::parse(Path::new("spsc.rs"), &fence).unwrap()]), [""; 0]);
}

#[test]
fn a_comment_that_has_lost_its_access() {
    assert_objection(
        &check_statement("// ORDERING: Relaxed: only we write.\nlet x = 1;"),
        "spsc.rs:2: this ORDERING comment stands above no atomic access",
    );
}

#[test]
fn a_renamed_ordering() {
    assert_objection(
        &check_statement("use core::sync::atomic::Ordering as O;"),
        "orderings keep their names",
    );
}
