//! Processes that end right after they have given a lock up: no claim of theirs is left.

use crate::build::{self, Mode};
use crate::program::World;

/// How often each of them ends: what is left now and then is found by many.
const ENDS: usize = 60;

fn end_again_and_again(state: &str) {
    let program = build::program("ends", Mode::Plain);
    let world = World::new();
    world.grant("create /locks");
    world.grant("create /locks/end");
    for end in 0..ENDS {
        let mut arguments = world.arguments(20_000).to_vec();
        arguments.push(state.to_owned());
        let status = build::start(&program, Mode::Plain, &arguments).end();
        assert!(status.success(), "{state}: {status}");
        assert_eq!(world.grant("children /locks/end"), "0", "end {end}");
    }
}

macro_rules! ends {
    ($($state:ident),+ $(,)?) => {
        $(#[test]
        fn $state() {
            end_again_and_again(stringify!($state));
        })+
    };
}

ends!(
    a_guard_is_freed,
    a_guard_on_a_handle_is_freed,
    a_guard_is_freed_elsewhere,
    a_release_is_not_waited_for,
    an_acquire_is_cancelled,
    an_acquire_is_cancelled_at_once,
    an_acquire_is_cancelled_that_has_its_outcome,
    an_acquire_is_too_late,
    a_client_is_closed_right_after_its_guards,
    mutexes_are_destroyed,
);
