//! The C API, used by programs in C: as they are, under valgrind, and with AddressSanitizer in the
//! program.
//!
//! The programs (`*.c`) check for themselves, and ask the test for what only it can do to the server
//! and the network between.

mod build;
mod process;
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
    a_loss_is_told_in_every_way: "loss",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    every_function_takes_bad_arguments: "hostile",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    handles_of_the_program_are_adopted: "adopt",
        plainly = Plain, under_valgrind = Valgrind, sanitized = Sanitized;
    // It stands before the C library, as valgrind and the sanitizer do.
    what_is_scarce_is_named: "scarce",
        plainly = Plain;
    // It waits for session timeouts to pass, which valgrind would have to be long.
    the_clock_decides: "clock",
        plainly = Plain, sanitized = Sanitized;
}

#[test]
fn the_hostile_program_calls_every_function() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).unwrap();
    let (header, hostile) = (read("include/zklock.h"), read("tests/capi/hostile.c"));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let declared = header.lines().filter(|line| !line.starts_with([' ', '#', '/', 't']));
    let functions: Vec<&str> = declared
        .filter_map(|line| line.split_once('(')?.0.rsplit(|c| !is_word(c)).next())
        .filter(|name| name.starts_with("zkl_"))
        .collect();
    assert!(functions.len() > 30, "only {functions:?}");
    for name in functions {
        assert!(hostile.contains(&format!("{name}(")), "hostile.c does not call {name}");
    }
}
