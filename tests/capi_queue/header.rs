//! `zoo_queue.h` as a compiler sees it, and what no program may do.

use test_support::c_programs::{check_syntax, command};

use crate::bench::Bench;
use crate::program::{build, source};

#[test]
fn the_header_is_c99_and_cpp17_and_the_struct_is_laid_out_as_it_was() {
    let layout = source("layout.c");
    for threaded in ["-DTHREADED", "-UTHREADED"] {
        check_syntax("cc", &["-std=c99", threaded], &layout).unwrap();
        check_syntax("c++", &["-std=c++17", "-x", "c++", threaded], &layout).unwrap();
    }
}

#[test]
fn every_function_answers_hostile_arguments_with_a_code() {
    let bench = Bench::shared();
    let status = command(build(&source("hostile.c")))
        .args([&bench.server.hosts(), &bench.path])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn the_example_that_knows_only_the_recipe_runs() {
    let bench = Bench::shared();
    let example = std::path::Path::new("c-examples/legacy_queue.c");
    let output = command(build(example)).arg(bench.server.hosts()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("the queue is empty"), "{said}");
}
