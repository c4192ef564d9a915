//! Hands on what `zookeeper-sys` found out about the C client. No logic of its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let told = |name| std::env::var(name).unwrap_or_else(|_| "unknown".into());
    let version = told("DEP_ZOOKEEPER_MT_VERSION");
    println!("cargo::rustc-env=ZKLOCK_C_CLIENT_VERSION={version}");

    // For the C library, which must not have a C client of its own: see src/capi/one_copy.rs.
    let link_kind = told("DEP_ZOOKEEPER_MT_LINK_KIND");
    println!("cargo::rustc-check-cfg=cfg(zklock_c_client, values(any()))");
    println!("cargo::rustc-check-cfg=cfg(cargo_c)");
    println!("cargo::rustc-check-cfg=cfg(zklock_loom)");
    println!("cargo::rustc-cfg=zklock_c_client=\"{link_kind}\"");
}
