//! Names of elements and of everything else that may lie beside them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn an_elements_number_is_read_as_the_server_wrote_it(number: i32) {
        prop_assert_eq!(sequence(&name(number)), Some(number));
    }

    #[test]
    fn what_no_server_wrote_is_no_element(child in ".*|qn-.*|.?qn--?0?[0-9]{8,11}.?") {
        if let Some(number) = sequence(&child) {
            prop_assert_eq!(child, name(number));
        }
    }

    #[test]
    fn elements_keep_the_servers_order_around_the_counters_end(
        first in prop_oneof![any::<i32>(), i32::MAX - 40..=i32::MAX],
        gaps in vec(1..40_u32, 0..20),
        strangers in vec("[^/\0]{0,9}", 0..4),
    ) {
        let mut numbers = vec![first];
        for gap in gaps {
            numbers.push(numbers[numbers.len() - 1].wrapping_add_unsigned(gap));
        }
        let strangers = strangers.into_iter().filter(|name| sequence(name).is_none());
        let mut children: Vec<String> =
            numbers.iter().map(|number| name(*number)).chain(strangers).collect();
        children.sort_unstable();
        prop_assert_eq!(in_order(&children), numbers);
    }
}
