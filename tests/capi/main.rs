//! The C API, used by programs in C, which are built against an installed tree: as they are, under
//! valgrind, and with AddressSanitizer in the program.
//!
//! The programs (`*.c`) check for themselves, and ask the test for what only it can do to the server
//! and the network between.

mod build;
mod ends;
mod memory;
mod program;
mod session_password;

use build::Mode;
use program::run;

/// One test for each program and mode.
macro_rules! programs {
    ($($name:ident: $file:literal, $($test:ident = $mode:ident),+;)*) => {
        $(mod $name {
            use super::*;

            $(#[test]
            fn $test() {
                run($file, Mode::$mode);
            })+
        })*
    };
}

programs! {
    locks_are_acquired_while_the_caller_waits: "acquire",
        plainly = Plain, linked_statically = Static, under_valgrind = Valgrind, sanitized = Sanitized;
    locks_are_acquired_with_a_callback: "async",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    an_event_loop_waits_for_descriptors_alone: "attempts",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    // Under valgrind, nothing may be left then that could be a leak.
    a_program_shuts_zklock_down: "shutdown",
        plainly = Plain, under_valgrind = Shutdown, sanitized = Sanitized;
    a_loss_is_told_in_every_way: "loss",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    what_is_queued_is_told_as_things_are_by_then: "queued",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    several_locks_are_one_and_one_of_several_leads: "elections",
        plainly = Plain, linked_statically = Static, under_valgrind = Valgrind, sanitized = Sanitized;
    other_stores_keep_locks_too: "stores",
        plainly = Plain, linked_statically = Static, under_valgrind = Valgrind, sanitized = Sanitized;
    recipes_do_what_they_say: "recipes",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    every_function_takes_bad_arguments: "hostile",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    // AddressSanitizer's runtime fails by itself on the stack of a thread that is cancelled.
    threads_are_cancelled_inside: "cancel",
        plainly = Plain, linked_statically = Static, under_valgrind = Valgrind;
    // AddressSanitizer's allocator hangs in a child if another thread held one of its locks at the fork. And for a
    // search for leaks, all that a child's lost threads knew of is one.
    a_child_leaves_its_parents_locks_alone: "fork",
        plainly = Plain, linked_statically = Static, under_valgrind = WithoutLeaks;
    handles_of_the_program_are_adopted: "adopt",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    // It stands before the C library, as valgrind and the sanitizer do.
    what_is_scarce_is_named: "scarce",
        plainly = Plain;
    // It waits for session timeouts to pass, which valgrind would have to be long.
    the_clock_decides: "clock",
        plainly = Plain, sanitized = Sanitized;
}

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// What a header declares.
fn functions_of(header: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    read(header)
        .lines()
        .filter(|line| !line.starts_with([' ', '#', '/', 't']))
        .filter_map(|line| line.split_once('(')?.0.rsplit(|c| !is_word(c)).next())
        .filter(|name| name.starts_with("zkl_") || name.starts_with("zkr_"))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn assert_calls(what: &str, text: &str, functions: &[String]) {
    for name in functions {
        assert!(text.contains(&format!("{name}(")), "{what} does not call {name}");
    }
}

/// What stands between the braces of a function in C.
fn body_of<'a>(program: &'a str, function: &str) -> &'a str {
    let (_, behind) = program.split_once(&format!(" {function}(void)\n{{\n")).expect(function);
    behind.split_once("\n}\n").expect("its end").0
}

#[test]
fn the_hostile_program_calls_every_function() {
    let functions = functions_of("include/zklock.h");
    assert!(functions.len() > 30, "only {functions:?}");
    let program = read("tests/capi/hostile.c") + &read("tests/capi/check.h");
    assert_calls("tests/capi/hostile.c", &program, &functions);
}

/// Neither what the parent calls before the fork counts, nor what the child calls on objects of its own.
#[test]
fn the_child_of_a_fork_calls_every_function_on_what_is_its_parents() {
    let program = read("tests/capi/fork.c");
    let refused = body_of(&program, "what_is_inherited_is_refused");
    // By the macros.
    let refused = format!("{refused} zkl_last_error()");
    for header in ["zklock.h", "zoo_lock.h", "zoo_queue.h"] {
        let functions = functions_of(&format!("include/{header}"));
        assert!(functions.len() > 5, "{header}: only {functions:?}");
        // The one is given nothing that could be inherited, the other is two calls in one.
        let inherits = |name: &String| !name.ends_with("_connect") && !name.ends_with("_or_error");
        let functions: Vec<String> = functions.into_iter().filter(inherits).collect();
        assert_calls("tests/capi/fork.c", &refused, &functions);
    }
}
