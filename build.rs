//! Hands on what `zookeeper-sys` found out about the C client. No logic of its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let told = |name: &str| std::env::var(name).unwrap_or_else(|_| "unknown".into());
    let version = told("DEP_ZOOKEEPER_MT_VERSION");
    println!("cargo::rustc-env=ZKLOCK_C_CLIENT_VERSION={version}");

    // For the C library, which must not have a C client of its own: see src/capi/one_copy.rs.
    let link_kind = told("DEP_ZOOKEEPER_MT_LINK_KIND");
    println!("cargo::rustc-check-cfg=cfg(zklock_c_client, values(any()))");
    for name in ["tls", "sasl"] {
        let values = r#"values(none(), "own", "library")"#;
        println!("cargo::rustc-check-cfg=cfg(zklock_{name}, {values})");
        let variable = format!("DEP_ZOOKEEPER_MT_{}", name.to_uppercase());
        let whose = told(&variable);
        if ["own", "library"].contains(&whose.as_str()) {
            println!("cargo::rustc-cfg=zklock_{name}");
            println!("cargo::rustc-cfg=zklock_{name}=\"{whose}\"");
        }
    }
    println!("cargo::rustc-check-cfg=cfg(cargo_c)");
    println!("cargo::rustc-check-cfg=cfg(zklock_loom)");
    println!("cargo::rustc-cfg=zklock_c_client=\"{link_kind}\"");
}
