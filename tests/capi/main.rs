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

/// One test for each program; in each mode it has a server of its own.
macro_rules! programs {
    ($($name:ident: $file:literal;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn by_a_plain_program() {
                run($file, Mode::Plain);
            }

            #[test]
            fn by_a_program_linked_statically() {
                run($file, Mode::Static);
            }

            #[test]
            fn under_valgrind() {
                run($file, Mode::Valgrind);
            }

            #[test]
            fn with_the_address_sanitizer() {
                run($file, Mode::Sanitized);
            }
        })*
    };
}

programs! {
    locks_are_acquired_while_the_caller_waits: "acquire";
    locks_are_acquired_with_a_callback: "async";
    a_loss_is_told_in_every_way: "loss";
    every_function_takes_bad_arguments: "hostile";
    handles_of_the_program_are_adopted: "adopt";
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
