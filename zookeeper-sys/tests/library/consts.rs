//! The constants written by hand are those of the library.

use std::ffi::c_int;

use zookeeper_sys::consts;

// Exported by the library since 3.6, but declared by no header.
unsafe extern "C" {
    static ZOO_SSL_CONNECTING_STATE: c_int;
}

macro_rules! assert_same {
    ($($name:ident)+) => {
        $(
            // SAFETY: a `const int` of the library, initialised before the program starts.
            let in_c = unsafe { zookeeper_sys::$name };
            assert_eq!(consts::$name, in_c, stringify!($name));
        )+
    };
}

#[test]
fn modes_are_those_of_the_library() {
    assert_same! {
        ZOO_PERSISTENT ZOO_EPHEMERAL ZOO_PERSISTENT_SEQUENTIAL ZOO_EPHEMERAL_SEQUENTIAL
        ZOO_CONTAINER ZOO_PERSISTENT_WITH_TTL ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL ZOO_SEQUENCE
    }
}

#[test]
fn states_are_those_of_the_library() {
    assert_same! {
        ZOO_EXPIRED_SESSION_STATE ZOO_AUTH_FAILED_STATE ZOO_CONNECTING_STATE
        ZOO_ASSOCIATING_STATE ZOO_CONNECTED_STATE ZOO_READONLY_STATE ZOO_NOTCONNECTED_STATE
    }
    // SAFETY: a `const int` of the library, initialised before the program starts.
    let in_c = unsafe { ZOO_SSL_CONNECTING_STATE };
    assert_eq!(consts::ZOO_SSL_CONNECTING_STATE, in_c);
}

#[test]
fn events_are_those_of_the_library() {
    assert_same! {
        ZOO_CREATED_EVENT ZOO_DELETED_EVENT ZOO_CHANGED_EVENT ZOO_CHILD_EVENT
        ZOO_SESSION_EVENT ZOO_NOTWATCHING_EVENT
    }
}

#[test]
fn permissions_are_those_of_the_library() {
    assert_same! {
        ZOO_PERM_READ ZOO_PERM_WRITE ZOO_PERM_CREATE ZOO_PERM_DELETE ZOO_PERM_ADMIN ZOO_PERM_ALL
    }
}

#[test]
fn every_const_int_that_is_bound_has_its_value_here() {
    let bound = include_str!("../../src/bindings.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub static ZOO_"))
        .filter(|rest| rest.ends_with(": ::core::ffi::c_int;"));
    let here = include_str!("../../src/consts.rs");
    let mut count = 0;
    for rest in bound {
        let name = rest.split(':').next().unwrap_or_default();
        assert!(here.contains(&format!(" ZOO_{name} = ")), "ZOO_{name}");
        count += 1;
    }
    assert!(count >= 27, "only {count} were read");
}
