//! The command over TLS and SASL: what its command gets to see, and what anybody does. The C client has to be built with
//! both: `scripts/secure`.

use std::process::{Command, Output};

use test_support::options;
use test_support::secure::{HERE, Scene, with_users};
use zklock::LockError;

const SECRET: &str = "bobs secret";

fn zklock(directory: &std::path::Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zklock"));
    command.args(arguments).env_remove("ZKLOCK_CONFIG").env("HOME", directory);
    command.env_remove("XDG_CONFIG_HOME").envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_command_runs_under_a_lock_over_tls_and_sasl_and_sees_no_secret() {
    let scene = Scene::new();
    let server = with_users(scene.servers(HERE), &scene.directory).start().unwrap();
    let hosts = server.secure_hosts().unwrap();
    let (file, secret) =
        (scene.directory.path().join("zklock.toml"), scene.directory.path().join("secret"));
    std::fs::write(&secret, SECRET).unwrap();
    let client = scene.client();
    let text = format!(
        "hosts = {hosts:?}\ntls-ca = {:?}\ntls-cert = {:?}\ntls-key = {:?}\nsasl-password-file = {:?}\n",
        scene.authority.ca(),
        client.cert,
        client.key,
        secret
    );
    std::fs::write(&file, text).unwrap();
    let config = [("ZKLOCK_CONFIG", file.to_str().unwrap()), ("ZKLOCK_SASL_USER", "bob")];
    // The environment and the arguments of all of zklock's processes that this user may see.
    let script = "env; tr '\\0' '\\n' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ";
    let run = ["run", "--acl", "creator", "/locks/secure", "--", "sh", "-c", script];
    let output = zklock(scene.directory.path(), &run, &config);
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complained}");
    assert!(said.contains("ZKLOCK_TOKEN="), "{said}");
    assert!(!said.contains(SECRET) && !complained.contains(SECRET), "{said}{complained}");
    // Who is nobody may not take it: the directory is bob's.
    let stranger = options().connect(&server.hosts()).wait().unwrap();
    let refused = stranger.lock("/locks/secure").try_acquire().wait().unwrap_err();
    assert!(matches!(refused, LockError::NotPermitted { .. }), "{refused:?}");

    std::fs::write(&secret, "another one").unwrap();
    let output = zklock(scene.directory.path(), &run, &config);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{complained}");
    assert!(complained.contains("refuse user bob by DIGEST-MD5"), "{complained}");
    assert!(!complained.contains("another one"), "{complained}");

    let doctor = zklock(scene.directory.path(), &["doctor", "--sasl-user", "bob"], &config);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("not asked one by one"));
}
