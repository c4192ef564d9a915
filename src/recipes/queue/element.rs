//! The names of a queue's elements, and their order.

/// The name of an element, without the sequence number, which the server appends.
pub(super) const PREFIX: &str = "qn-";

/// The sequence number of an element; `None` for a child that is no element.
pub(in crate::recipes) fn sequence(name: &str) -> Option<i32> {
    let number = name.strip_prefix(PREFIX)?;
    // As the server writes it: ten characters, or a minus sign and ten digits at the end of the
    // counter's range. After the largest number comes the smallest.
    number.parse().ok().filter(|read: &i32| format!("{read:010}") == number)
}

/// The name of the element with that sequence number.
pub(super) fn name(number: i32) -> String {
    format!("{PREFIX}{number:010}")
}

/// The numbers of the children that are elements, oldest first.
pub(super) fn in_order(children: &[String]) -> Vec<i32> {
    let mut numbers: Vec<i32> = children.iter().filter_map(|name| sequence(name)).collect();
    // Serial numbers: of two that are less than half the circle apart the one behind is the older.
    // Distances from one of them have an order even where the counter has wrapped.
    let origin = numbers.first().copied().unwrap_or(0);
    numbers.sort_unstable_by_key(|number| number.wrapping_sub(origin));
    numbers
}

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../../tests/inside/properties/queue_elements.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_the_queue_made_is_an_element() {
        for (name, number) in [
            ("qn-0000000007", Some(7)),
            ("qn-2147483647", Some(i32::MAX)),
            ("qn--000000001", Some(-1)),
            ("qn--2147483648", Some(i32::MIN)),
            ("qn-9999999999", None),
            ("qn-", None),
            ("qn-7", None),
            ("qn-+000000007", None),
            ("qn--0000000007", None),
            ("qn-000000000x", None),
            ("qn-00000000070", None),
            ("xqn-0000000007", None),
            ("0000000007", None),
            ("lock", None),
            ("", None),
        ] {
            assert_eq!(sequence(name), number, "{name}");
        }
    }

    #[test]
    fn elements_are_put_in_order_and_foreign_children_left_out() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let children: Vec<String> =
            names(&["qn-0000000010", "readme", "qn-0000000009", "aa", "qn-0000000100"]);
        assert_eq!(in_order(&children), [9, 10, 100]);
    }

    #[test]
    fn order_survives_the_wrap_of_the_counter() {
        let ordered = [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1];
        let mut children = ordered.map(name);
        children.reverse();
        assert_eq!(in_order(&children), ordered);
    }
}
