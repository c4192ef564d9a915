//! Database servers: what each keeps apart from the others.

use std::fs;

use zklock_testing::Database;

/// MariaDB deletes files of this name in its directory for temporary tables when it starts.
#[test]
fn a_server_that_starts_leaves_the_temporary_tables_of_others_alone() {
    let of_another = std::env::temp_dir().join(format!("#sql-temptable-{:x}", std::process::id()));
    fs::write(&of_another, "").unwrap();
    if rustix::process::geteuid().is_root() {
        // The servers run as this user.
        std::os::unix::fs::chown(&of_another, Some(65_534), None).unwrap();
    }
    let _server = Database::mariadb().unwrap();
    assert!(of_another.exists(), "{} is gone", of_another.display());
    fs::remove_file(of_another).unwrap();
}
