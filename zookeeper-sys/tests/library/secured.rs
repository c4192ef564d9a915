//! Whether a library has TLS and SASL is read from the library.

#[allow(dead_code, reason = "the rest of it serves the build script")]
#[path = "../../build/secure.rs"]
mod secure;

use std::fs;
use std::path::Path;

use secure::Secure;
use zookeeper_sys::secure::{Secured, sasl, tls};

#[test]
fn a_library_has_what_it_exports() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libzookeeper_mt.so");
    for (bytes, tls, sasl) in [
        (&b"\0zookeeper_init\0zookeeper_init2\0"[..], false, false),
        (b"\0zookeeper_init_ssl\0zoo_state\0", true, false),
        (b"\0zookeeper_init_ssl_more\0zookeeper_init_sasl\0", false, true),
        (b"\0zookeeper_init_sasl\0zookeeper_init_ssl\0", true, true),
        (b"no zookeeper_init_ssl\0", false, false),
    ] {
        fs::write(&file, bytes).expect("a writable directory");
        assert_eq!(Secure::of_library(&file), Ok(Secure { tls, sasl }), "{bytes:?}");
    }
    fs::remove_file(&file).expect("the file is there");
    assert!(Secure::of_library(&file).is_err());
}

#[test]
fn the_linked_library_is_what_it_was_found_to_be() {
    // SAFETY: `dlsym` takes any name, and gives an address or null.
    let exports = |name: &std::ffi::CStr| unsafe {
        !libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null()
    };
    // One that is part of this program exports nothing.
    for (has, function) in [(tls(), c"zookeeper_init_ssl"), (sasl(), c"zookeeper_init_sasl")] {
        match has {
            Secured::Not => assert!(!exports(function), "{function:?}"),
            Secured::Library => assert!(exports(function), "{function:?}"),
            _ => assert!(cfg!(feature = "source") && !exports(function), "{function:?}"),
        }
    }
}
