//! The names of a work queue's elements: their priority, and the order in which they are delivered.

use super::queue::sequence;

/// The priority of elements that are put without one, and of those that C programs put.
pub(crate) const DEFAULT_PRIORITY: u8 = 128;

/// The name of an element, without the sequence number, which the server appends.
pub(super) fn prefix(priority: u8) -> String {
    if priority == DEFAULT_PRIORITY { "qn-".to_owned() } else { format!("qp-{priority:03}-") }
}

/// The priority and the number of an element; `None` for a child that is none.
fn rank(name: &str) -> Option<(u8, i32)> {
    let Some(rest) = name.strip_prefix("qp-") else {
        return Some((DEFAULT_PRIORITY, sequence(name)?));
    };
    let (digits, number) = rest.split_at_checked(3)?;
    let priority = digits.parse().ok().filter(|priority| format!("{priority:03}") == digits)?;
    Some((priority, sequence(&format!("qn{number}"))?))
}

/// The names of the elements, in the order in which they are delivered.
pub(super) fn in_order(names: &[String]) -> Vec<&str> {
    let ranked = names.iter().filter_map(|name| Some((rank(name)?, name.as_str())));
    let mut ranked: Vec<((u8, i32), &str)> = ranked.collect();
    // As serial numbers: in order also where the counter has wrapped.
    let origin = ranked.first().map_or(0, |((_, number), _)| *number);
    ranked.sort_unstable_by_key(|((priority, number), _)| (*priority, number.wrapping_sub(origin)));
    ranked.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_order_of_priority_and_then_of_number() {
        let names = [
            "qn--2147483648",
            "qp-007-0000000009",
            "readme",
            "qn-2147483647",
            "qp-200-0000000001",
            "qp-07-0000000001",
            "qp-300-0000000001",
            "qp-007-0000000010",
            "qp-007-1",
        ];
        let names = names.map(str::to_owned);
        let ordered = [
            "qp-007-0000000009",
            "qp-007-0000000010",
            "qn-2147483647",
            "qn--2147483648",
            "qp-200-0000000001",
        ];
        assert_eq!(in_order(&names), ordered);
        assert_eq!([prefix(128), prefix(7)], ["qn-", "qp-007-"]);
    }
}
