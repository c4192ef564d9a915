//! The header under the strictest reading of C99 and C++17, alone and beside the C client's.

use std::process::Command;

use super::generate::path_of;

const BOTH: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];
const ZOOKEEPER: &str = "#include <zookeeper/zookeeper.h>\n";
const ZKLOCK: &str = "#include <zklock.h>\n";
/// Uses what the header names, and the C client's names where that is there too.
const USE: &str = "
int use(const char *hosts, struct _zhandle *zh);
int use(const char *hosts, struct _zhandle *zh) {
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    zkl_client *client = NULL;
    zkl_lock *lock = NULL;
    int rc = zkl_client_connect(hosts, &options, &client);
    rc += zkl_client_adopt(zh, NULL, &client);
    rc += zkl_lock_new(client, \"/lock\", NULL, &lock);
    zkl_lock_free(lock);
    zkl_client_free(client);
    return rc == ZKL_TAKEN || ZKL_VERSION_NUMBER > 0;
}
";

/// `standard`: with more options behind it.
fn compile(compiler: &str, standard: &str, extension: &str, source: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("use.{extension}"));
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(format!("-std={standard}").split(' '))
        .args(BOTH)
        .arg(format!("-I{}", path_of("include").display()))
        .arg(&file)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} -std={standard}:\n{source}\n{errors}");
}

#[test]
fn cpp_without_exceptions_and_types_at_run_time_takes_all_headers() {
    for header in ["zklock.h", "zoo_lock.h", "zoo_queue.h"] {
        let source = format!("#define THREADED\n#include <{header}>\n");
        for standard in ["c++98", "c++17"] {
            let standard = format!("{standard} -fno-exceptions -fno-rtti");
            compile("c++", &standard, "cc", &source);
        }
    }
}

#[test]
fn programs_in_c89_take_the_recipes_headers() {
    for header in ["zoo_lock.h", "zoo_queue.h"] {
        let source =
            format!("#define THREADED\n#include <{header}>\nint main(void) {{ return 0; }}\n");
        compile("cc", "c89 -pedantic-errors", "c", &source);
    }
}

fn everywhere(includes: &str) {
    let source = format!("{includes}{USE}");
    compile("cc", "c99", "c", &source);
    compile("c++", "c++17", "cc", &source);
}

#[test]
fn it_stands_alone() {
    everywhere(ZKLOCK);
    everywhere(&format!("{ZKLOCK}{ZKLOCK}"));
}

#[test]
fn it_stands_before_the_header_of_the_c_client_and_after_it() {
    everywhere(&format!("{ZKLOCK}{ZOOKEEPER}"));
    everywhere(&format!("{ZOOKEEPER}{ZKLOCK}"));
}

#[test]
fn the_readmes_example_compiles() {
    let readme = std::fs::read_to_string(path_of("README.md")).unwrap();
    let mut blocks = readme.split("```c\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let (example, _) = blocks.next().expect("a C example");
    assert!(example.contains("zkl_lock_acquire"), "{example}");
    let program = format!(
        "#include <stdio.h>\n{ZOOKEEPER}{ZKLOCK}int use(zhandle_t *zh);\nint use(zhandle_t *zh) {{\n\
         {example}return rc;\n}}\n"
    );
    compile("cc", "c99", "c", &program);
    compile("c++", "c++17", "cc", &program);
}
