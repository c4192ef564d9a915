//! The struct and the functions are those that programs were compiled with.

use crate::c_programs::{build, limited, run};

#[test]
fn the_struct_and_the_functions_are_the_recipes() {
    // It is held together by static assertions; that it starts shows that the functions are there.
    run(&mut limited(build("tests/zkr_lock/abi.c", "abi", &[])));
}

#[test]
fn the_header_is_one_for_cpp_too() {
    let options = ["-x", "c++", "-std=c++17"];
    // `-std=gnu11` comes first, and the last one counts.
    run(&mut limited(build("tests/zkr_lock/abi.c", "abi_cpp", &options)));
}
