//! Names of claims, ours and everybody else's, wherever the server's counter stands.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::znode::Stat;
use crate::zookeeper::acquire::listing::Listing;

/// What comes before the number in the names of all who queue with us, with a text of their own.
fn peer() -> impl Strategy<Value = String> {
    let permits = (1..=u32::MAX).prop_map(Kind::Permits);
    let marked = prop_oneof![Just(Kind::Read), Just(Kind::Write), permits];
    let naming = prop_oneof![Just(Kind::Exclusive), marked].prop_map(Naming::Of);
    let own = (naming, any::<i64>()).prop_map(|(naming, czxid)| naming.prefix(1, czxid));
    let recipe = any::<i64>().prop_map(|session| Naming::Recipe.prefix(session, 0));
    let uuid = any::<u128>().prop_map(uuid::Uuid::from_u128);
    let curator = uuid.prop_map(|uuid| format!("_c_{uuid}-lock-"));
    let kazoo = any::<u128>().prop_map(|bits| format!("{bits:032x}__lock__"));
    let java = any::<i64>().prop_map(|session| format!("x-{session}-"));
    // Where a text ends in a separator of its own, the minus sign of a large number may be one.
    let anyone = "([^/\0]{0,19}[^/\0_-])?".prop_map(|text| format!("{text}-"));
    prop_oneof![own, recipe, curator, kazoo, java, anyone]
}

/// A number, often one near the places where something happens to it.
fn number() -> impl Strategy<Value = i32> {
    let near = |at: i32| (-3..=3).prop_map(move |by: i32| at.wrapping_add(by));
    prop_oneof![any::<i32>(), near(0), near(i32::MAX), near(-999_999_999), near(999_999_999)]
}

/// Claims in the order in which a server numbered them, less than half the circle in all.
fn line() -> impl Strategy<Value = Vec<String>> {
    let claims = vec((peer(), 1..1_000_000_000_u32), 1..12);
    (number(), claims).prop_map(|(first, claims)| {
        let mut at = 0_u32;
        let mut names = Vec::new();
        for (prefix, gap) in claims {
            names.push(numbered_name(&prefix, first.wrapping_add_unsigned(at)));
            at = at.saturating_add(gap);
            if at >= 1 << 31 {
                break;
            }
        }
        names
    })
}

fn with_strangers() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let strangers = vec("[^/\0]{0,12}|config|readme|lock-[0-9]{1,9}|[0-9]{10}", 0..5);
    (line(), strangers).prop_flat_map(|(line, strangers)| {
        let strangers = strangers.into_iter().filter(|name| sequence(name).is_none());
        let all: Vec<String> = line.iter().cloned().chain(strangers).collect();
        (Just(line), Just(all).prop_shuffle())
    })
}

fn listing(children: &[String]) -> Listing {
    Listing::new(children.to_vec(), Stat::default())
}

proptest! {
    #[test]
    fn a_number_is_read_as_the_server_wrote_it(prefix in peer(), number in number()) {
        prop_assert_eq!(sequence(&numbered_name(&prefix, number)), Some(number));
    }

    #[test]
    fn what_no_server_wrote_is_no_number(name in ".*|.{0,9}(-|__)-?[0-9]{8,11}.?") {
        if let Some(number) = sequence(&name) {
            let written = numbered_name("", number);
            let before = name.strip_suffix(&written);
            prop_assert!(before.is_some_and(|text| text.ends_with('-') || text.ends_with("__")));
        }
    }

    #[test]
    fn a_line_is_the_servers_whoever_looks_and_whatever_else_is_there(
        (line, children) in with_strangers()
    ) {
        let listing = listing(&children);
        prop_assert!(listing.in_order().eq(line.iter()));
        for (at, own) in line.iter().enumerate() {
            let place = listing.find(own).unwrap();
            prop_assert!(listing.before(place).eq(line[..at].iter().rev()));
        }
    }

    #[test]
    fn of_two_claims_one_is_first_also_where_a_number_was_given_twice(
        prefixes in (peer(), peer()), number in number(), gap in 0..1_u32 << 31,
    ) {
        let numbers = (number, number.wrapping_add_unsigned(gap));
        let names = [numbered_name(&prefixes.0, numbers.0), numbered_name(&prefixes.1, numbers.1)];
        prop_assume!(names[0] != names[1]);
        let listing = listing(&names);
        let is_first = |own: &String| listing.before(listing.find(own).unwrap()).next().is_none();
        prop_assert!(is_first(&names[0]) != is_first(&names[1]));
    }

    #[test]
    fn any_children_at_all_have_an_order(mut children in vec("[^/\0]{0,9}-?-[0-9]{9,10}|.*", 0..30)) {
        children.sort_unstable();
        children.dedup();
        let listing = listing(&children);
        let claims = children.iter().filter(|name| sequence(name).is_some()).count();
        prop_assert_eq!(listing.in_order().count(), claims);
        for own in &children {
            match listing.find(own) {
                None => prop_assert_eq!(sequence(own), None),
                Some(place) => {
                    let before: Vec<_> = listing.before(place).collect();
                    prop_assert!(before.len() < claims);
                    prop_assert!(!before.contains(&own.as_str()));
                }
            }
        }
    }

    #[test]
    fn another_sessions_name_is_not_ours(sessions: (i64, i64), number in number()) {
        prop_assume!(sessions.0 != sessions.1);
        let [one, other] = [sessions.0, sessions.1].map(|session| Naming::Recipe.prefix(session, 0));
        prop_assert!(!numbered_name(&one, number).starts_with(&other));
        prop_assert_eq!(one.len(), "x-0123456789abcdef-".len());
    }
}
