//! Histories written by hand: those that a lock allows are accepted, the others are rejected.

use history::check;

/// A history of one lock from short words: `TIME PROCESS WORD [TOKEN]`, where `kind=` changes the kind.
fn written(short: &str) -> String {
    let mut kind = "mutex";
    let mut lines = String::new();
    for words in short.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let [at, process, word, number @ ..] = words.as_slice() else {
            kind = words.first().and_then(|word| word.strip_prefix("kind=")).unwrap_or(kind);
            continue;
        };
        let token = number.first().copied().unwrap_or("0");
        let rest = match *word {
            "asks" => r#""event":"call","operation":"acquire""#.to_owned(),
            "asks-two" => r#""event":"call","operation":"acquire","permits":2"#.to_owned(),
            "got" => format!(
                r#""event":"return","operation":"acquire","outcome":"done","token":{token}"#
            ),
            "none" => r#""event":"return","operation":"acquire","outcome":"refused""#.to_owned(),
            "held" => format!(r#""event":"held","token":{token}"#),
            "releases" => format!(r#""event":"call","operation":"release","token":{token}"#),
            "released" => r#""event":"return","operation":"release","outcome":"done""#.to_owned(),
            "unsure" => r#""event":"return","operation":"release","outcome":"unknown""#.to_owned(),
            "writes" => format!(r#""event":"call","operation":"write","token":{token}"#),
            "wrote" => r#""event":"return","operation":"write","outcome":"done""#.to_owned(),
            "breaks" => r#""event":"call","operation":"break""#.to_owned(),
            "broke" => r#""event":"return","operation":"break","outcome":"done""#.to_owned(),
            "puts" => r#""event":"call","operation":"put""#.to_owned(),
            "put" => r#""event":"return","operation":"put","outcome":"done""#.to_owned(),
            "not-put" => r#""event":"return","operation":"put","outcome":"refused""#.to_owned(),
            "finishes" => format!(r#""event":"call","operation":"finish","token":{token}"#),
            "finished" => r#""event":"return","operation":"finish","outcome":"done""#.to_owned(),
            "not-finished" => {
                r#""event":"return","operation":"finish","outcome":"refused""#.to_owned()
            }
            "limits" => format!(r#""event":"call","operation":"limit","limit":{token}"#),
            "limited" => r#""event":"return","operation":"limit","outcome":"done""#.to_owned(),
            other => panic!("{other}: no such word"),
        };
        lines += &format!(
            "{{\"at\":{at},\"process\":\"{process}\",{rest},\"kind\":\"{kind}\",\"path\":\"/a\"}}\n"
        );
    }
    lines
}

fn found(short: &str) -> Vec<&'static str> {
    let verdict = check(&written(short)).expect("a history");
    verdict.violations.iter().map(|violation| violation.what).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn one_holder_after_the_other_is_accepted() {
    assert_eq!(
        found(
            "1 a asks\n2 b asks\n3 a got 7\n4 a held 7\n5 a held 7\n6 a releases 7\n7 b got 8\n8 a released\n9 b held 8"
        ),
        NONE
    );
}

#[test]
fn two_holders_are_rejected_with_their_story() {
    let short =
        "1 a asks\n2 b asks\n3 a got 7\n4 a held 7\n5 b got 8\n6 b held 8\n7 a held 7\n8 b held 8";
    assert_eq!(found(short), ["two holders"]);
    let verdict = check(&written(short)).expect("a history").to_string();
    for line in ["line      3", "a (mutex 0x7) holds: last look", "b (mutex 0x8) has acquired"] {
        assert!(verdict.contains(line), "{verdict}");
    }
}

#[test]
fn a_fenced_write_that_is_done_proves_a_hold() {
    let acquired = "1 a asks\n2 b asks\n3 a got 7\n5 b got 8\n6 b held 8\n";
    assert_eq!(found(&format!("{acquired}7 a writes 7\n8 a wrote\n9 b held 8")), ["two holders"]);
    assert_eq!(found(&format!("{acquired}7 a writes 7\n9 b held 8")), NONE, "it may never be done");
}

#[test]
fn a_token_that_does_not_grow_is_rejected() {
    let first = "1 a asks\n2 a got 7\n3 a held 7\n4 a releases 7\n5 a released\n6 b asks\n";
    assert_eq!(found(&format!("{first}7 b got 6\n8 b held 6")), ["the token did not grow"]);
    assert_eq!(found(&format!("{first}7 b got 7\n8 b held 7"))[0], "two holds have one token");
}

#[test]
fn a_hold_after_its_release_returned_is_rejected() {
    let history = "1 a asks\n2 a got 7\n3 a held 7\n4 a releases 7\n";
    assert_eq!(
        found(&format!("{history}5 a released\n6 a held 7")),
        ["held after its release returned"]
    );
    assert_eq!(found(&format!("{history}5 a unsure\n6 a held 7")), NONE);
}

#[test]
fn a_call_without_a_return_constrains_nothing() {
    assert_eq!(
        found(
            "1 a asks\n2 a got 7\n3 a held 7\n4 a releases 7\n5 b asks\n6 c asks\n7 c got 9\n8 c held 9"
        ),
        NONE
    );
}

#[test]
fn a_holder_whose_claim_was_broken_is_excused_and_its_rival_is_not() {
    let history = "1 a asks\n2 a got 7\n3 a held 7\n4 o breaks\n5 o broke\n6 b asks\n7 b got 8\n8 b held 8\n9 a held 7\n10 b held 8\n";
    assert_eq!(found(history), NONE);
    assert_eq!(
        found(&format!("{history}11 c asks\n12 c got 9\n13 c held 9\n14 b held 8")),
        ["two holders"]
    );
}

#[test]
fn readers_hold_together_but_no_writer_does() {
    let readers = "kind=read\n1 a asks\n2 a got 7\n3 b asks\n4 b got 8\n5 a held 7\n6 b held 8\n";
    assert_eq!(found(readers), NONE);
    assert_eq!(
        found(&format!(
            "{readers}kind=write\n7 c asks\n8 c got 9\nkind=read\n9 a held 7\nkind=write\n10 c held 9"
        )),
        ["two holders"]
    );
}

#[test]
fn a_semaphore_admits_no_more_than_its_highest_limit_at_the_time() {
    let full =
        "kind=semaphore\n1 o limits 2\n2 o limited\n3 a asks\n4 a got 7\n5 b asks\n6 b got 8\n";
    let third = "20 c asks\n21 c got 9\n22 a held 7\n23 b held 8\n24 c held 9\n";
    assert_eq!(found(&format!("{full}{third}")), ["more permits are taken than there are"]);
    assert_eq!(found(&format!("{full}7 o limits 3\n8 o limited\n{third}")), NONE);
    assert_eq!(
        found(&format!("{full}7 o limits 3\n{third}")),
        NONE,
        "it may come into force later"
    );
    assert_eq!(
        found(
            "kind=semaphore\n1 o limits 2\n2 o limited\n3 a asks-two\n4 a got 7\n5 b asks\n6 b got 8\n7 b held 8\n8 a held 7"
        ),
        ["more permits are taken than there are"]
    );
    assert_eq!(found(&format!("{full}7 o limits 1\n8 o limited\n9 a held 7\n10 b held 8")), NONE);
}

#[test]
fn an_element_is_delivered_to_one_consumer_at_a_time_until_it_is_removed() {
    let first = "kind=work\n1 p puts\n2 p put\n3 a asks\n4 a got 7\n5 a held 7\n";
    let again = "8 b asks\n9 b got 8\n10 b held 8\n";
    let finished = "6 a finishes 7\n7 a finished\n";
    assert_eq!(found(&format!("{first}6 a releases 7\n7 a released\n{again}")), NONE);
    assert_eq!(found(&format!("{first}{again}11 a finishes 7\n12 a not-finished\n")), NONE);
    assert_eq!(found(&format!("{first}{again}11 a finishes 7\n12 a finished\n"))[0], "two holders");
    assert_eq!(found(&format!("{first}{finished}")), NONE);
    assert_eq!(found(&format!("{first}{finished}{again}")), ["delivered after it was removed"]);
    let never = "kind=work\n1 p puts\n2 p not-put\n3 a asks\n4 a got 7\n";
    assert_eq!(found(never), ["delivered before it was put"]);
    assert_eq!(found(&never.replace("2 p not-put\n", "")), NONE, "it may be put at any time");
}

#[test]
fn a_file_that_is_no_history_is_refused_with_its_line() {
    let history = written("1 a asks\n2 a got 7");
    let refused = check(&format!("{history}nonsense\n")).expect_err("nonsense");
    assert!(refused.starts_with("line 3: "), "{refused}");
    assert!(check(&format!("{history}torn")).is_ok(), "the last line of a killed process");
    assert!(check(&written("1 a held 7")).is_err());
}

#[test]
fn the_example_is_accepted() {
    let verdict = check(include_str!("../example.jsonl")).expect("a history");
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.holds["mutex"], verdict.calls["mutex"], verdict.open), (6, 12, 0));
}
