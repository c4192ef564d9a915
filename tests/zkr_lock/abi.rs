//! The struct and the functions are those that programs were compiled with.

use test_support::c_programs::{build, build_as_cpp, limited, run};

#[test]
fn the_struct_and_the_functions_are_the_recipes() {
    // It is held together by static assertions; that it starts shows that the functions are there.
    run(&mut limited(build("tests/zkr_lock/abi.c", "abi", &[])));
}

#[test]
fn the_header_is_one_for_cpp_too() {
    run(&mut limited(build_as_cpp("tests/zkr_lock/abi.c", "abi_cpp")));
}
