//! Hands on what `zookeeper-sys` found out about the C client. No logic of its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("DEP_ZOOKEEPER_MT_VERSION").unwrap_or_else(|_| "unknown".into());
    println!("cargo::rustc-env=ZKLOCK_C_CLIENT_VERSION={version}");
}
