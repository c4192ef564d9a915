//! The programs in scripts/checks, each of which can be run alone. They mostly compile, so they leave the processor to
//! the tests that run beside them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A test for each script, and [`CHECKS`], their names.
macro_rules! checks {
    ($($test:ident => $script:literal)*) => {
        const CHECKS: &[&str] = &[$($script),*];
        $(#[test] fn $test() { run($script) })*
    };
}

checks! {
    zookeeper_sys_links_the_c_client_in_every_way => "c-client-features"
    an_installation_is_complete_and_leaves_nothing_when_it_is_removed => "c-install"
    the_c_libraries_export_what_the_headers_declare => "c-symbols"
    the_documentation_builds_without_warnings => "docs"
    shared_tables_withstand_every_interleaving => "interleavings"
    the_public_api_is_the_recorded_one => "public-api"
    sessions_of_a_server_with_the_id_255_work => "server-255"
    the_raw_floor_has_no_data_race => "thread-sanitizer"
    the_raw_floor_is_clean_under_valgrind => "valgrind"
}

fn scripts() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/checks"))
}

fn run(script: &str) {
    let mut command = Command::new("nice");
    command.arg(scripts().join(script));
    // As when it runs alone: without the libraries and the servers of the tests.
    command.env_remove("LD_LIBRARY_PATH").env_remove(test_support::shared::VARIABLE);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "scripts/checks/{script}:\n{}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn every_script_is_run_by_a_test() {
    let files = scripts().read_dir().unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, CHECKS.iter().map(Into::into).collect());
}
