//! TLS and SASL of the C client: whether it has them, and what it declares for them.
//!
//! The header declares these only to programs that define how the library was built. The declarations here
//! exist only if the linked library has the functions.

/// Whose TLS or SASL it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Secured {
    /// The C client that is linked was built without.
    Not,
    /// It is in the installed library, as upstream has it.
    Library,
    /// This crate has built the C client with it, from source: `zookeeper_sys_init_secure` takes it.
    Own,
}

/// The TLS of the C client that this crate was built with.
pub const fn tls() -> Secured {
    if cfg!(zookeeper_sys_tls = "own") {
        Secured::Own
    } else if cfg!(zookeeper_sys_tls = "library") {
        Secured::Library
    } else {
        Secured::Not
    }
}

/// The SASL of the C client that this crate was built with.
pub const fn sasl() -> Secured {
    if cfg!(zookeeper_sys_sasl = "own") {
        Secured::Own
    } else if cfg!(zookeeper_sys_sasl = "library") {
        Secured::Library
    } else {
        Secured::Not
    }
}

#[cfg(any(zookeeper_sys_tls, zookeeper_sys_sasl))]
#[allow(missing_docs, reason = "C's declarations")]
mod declared {
    #[cfg(zookeeper_sys_sasl)]
    use core::ffi::c_ulong;
    use core::ffi::{c_char, c_int, c_void};

    use crate::bindings::{clientid_t, log_callback_fn, watcher_fn, zhandle_t};

    /// The certificates of a handle: files in PEM form, and the key's password, which is empty if there is none. All
    /// of it is copied.
    #[cfg(any(zookeeper_sys_tls = "own", zookeeper_sys_sasl = "own"))]
    #[repr(C)]
    #[allow(non_camel_case_types)]
    pub struct zookeeper_sys_tls_t {
        pub ca: *const c_char,
        pub cert: *const c_char,
        pub key: *const c_char,
        pub password: *const c_char,
        pub verify_host: c_int,
    }

    /// A function that gives SASL a name or a password. An array of them ends with the `id` 0, and has to live as long
    /// as the handle.
    #[cfg(zookeeper_sys_sasl)]
    #[repr(C)]
    #[allow(non_camel_case_types)]
    pub struct sasl_callback_t {
        pub id: c_ulong,
        pub proc_: Option<unsafe extern "C" fn() -> c_int>,
        pub context: *mut c_void,
    }

    #[cfg(zookeeper_sys_sasl)]
    #[repr(C)]
    #[allow(non_camel_case_types)]
    pub struct zoo_sasl_params_t {
        pub service: *const c_char,
        pub host: *const c_char,
        pub mechlist: *const c_char,
        pub callbacks: *const sasl_callback_t,
    }

    /// A password: `len` bytes from `data` on.
    #[cfg(zookeeper_sys_sasl)]
    #[repr(C)]
    #[allow(non_camel_case_types)]
    pub struct sasl_secret_t {
        pub len: c_ulong,
        pub data: [u8; 1],
    }

    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_OK: c_int = 0;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_FAIL: c_int = -1;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_NOMEM: c_int = -2;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_CB_LIST_END: c_ulong = 0;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_CB_USER: c_ulong = 0x4001;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_CB_AUTHNAME: c_ulong = 0x4002;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_CB_PASS: c_ulong = 0x4004;
    #[cfg(zookeeper_sys_sasl)]
    pub const SASL_CB_GETREALM: c_ulong = 0x4008;

    unsafe extern "C" {
        /// As `zookeeper_init2`, with TLS and SASL where they are not null.
        #[cfg(any(zookeeper_sys_tls = "own", zookeeper_sys_sasl = "own"))]
        pub fn zookeeper_sys_init_secure(
            host: *const c_char,
            watcher: watcher_fn,
            recv_timeout: c_int,
            clientid: *const clientid_t,
            context: *mut c_void,
            flags: c_int,
            log_callback: log_callback_fn,
            tls: *const zookeeper_sys_tls_t,
            sasl_params: *mut c_void,
        ) -> *mut zhandle_t;

        #[cfg(zookeeper_sys_tls = "library")]
        pub fn zookeeper_init_ssl(
            host: *const c_char,
            cert: *const c_char,
            watcher: watcher_fn,
            recv_timeout: c_int,
            clientid: *const clientid_t,
            context: *mut c_void,
            flags: c_int,
        ) -> *mut zhandle_t;

        #[cfg(zookeeper_sys_sasl = "library")]
        pub fn zookeeper_init_sasl(
            host: *const c_char,
            watcher: watcher_fn,
            recv_timeout: c_int,
            clientid: *const clientid_t,
            context: *mut c_void,
            flags: c_int,
            log_callback: log_callback_fn,
            sasl_params: *mut zoo_sasl_params_t,
        ) -> *mut zhandle_t;

        #[cfg(zookeeper_sys_sasl)]
        pub fn sasl_set_mutex(
            new: Option<unsafe extern "C" fn() -> *mut c_void>,
            lock: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
            unlock: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
            free: Option<unsafe extern "C" fn(*mut c_void)>,
        );

        #[cfg(zookeeper_sys_sasl)]
        pub fn sasl_client_init(callbacks: *const sasl_callback_t) -> c_int;

        /// The mechanisms that this machine has, up to a null; `sasl_client_init` goes before.
        #[cfg(zookeeper_sys_sasl)]
        pub fn sasl_global_listmech() -> *const *const c_char;
    }
}

#[cfg(any(zookeeper_sys_tls, zookeeper_sys_sasl))]
pub use declared::*;
