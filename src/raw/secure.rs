//! Opens handles with TLS or SASL, where the C client that is linked has them.

#[cfg(any(zklock_tls, zklock_sasl))]
use std::ffi::CString;
use std::ffi::{c_char, c_int};
use std::io;

use super::handle::Config;
#[cfg(zklock_sasl)]
use super::sasl;
use super::{sys, watcher};

/// The settings of every handle.
pub(super) struct Plain {
    pub(super) hosts: *const c_char,
    pub(super) timeout: c_int,
    pub(super) client_id: *const sys::clientid_t,
    pub(super) id: usize,
}

impl Plain {
    /// # Safety
    /// `hosts` is a C string and `client_id` null or a client's id; both stay during the call, which copies them.
    unsafe fn open(&self) -> *mut sys::zhandle_t {
        // SAFETY: the caller keeps the promise above; the context is a number that `watcher` looks up, so it
        // can't dangle.
        unsafe {
            sys::zookeeper_init2(
                self.hosts,
                Some(watcher::watcher),
                self.timeout,
                self.client_id,
                watcher::context(self.id),
                0,
                Some(super::log::forward),
            )
        }
    }
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}

/// A handle, or null with an error of the system's.
///
/// # Errors
/// The settings for TLS and SASL that can't be used.
///
/// # Safety
/// As [`Plain::open`].
pub(super) unsafe fn open(plain: &Plain, config: &Config) -> io::Result<*mut sys::zhandle_t> {
    match (&config.tls, &config.sasl) {
        // SAFETY: the caller keeps the promise above.
        (None, None) => Ok(unsafe { plain.open() }),
        // SAFETY: as above.
        _ => unsafe { open_secure(plain, config) },
    }
}

/// A handle is closed, or was not opened.
pub(super) fn closed(id: usize) {
    #[cfg(zklock_sasl)]
    sasl::forget(id);
    let _ = id;
}

#[cfg(not(any(zklock_tls, zklock_sasl)))]
unsafe fn open_secure(_: &Plain, _: &Config) -> io::Result<*mut sys::zhandle_t> {
    Err(invalid("the C client that is linked has neither TLS nor SASL"))
}

#[cfg(any(zklock_tls, zklock_sasl))]
unsafe fn open_secure(plain: &Plain, config: &Config) -> io::Result<*mut sys::zhandle_t> {
    #[cfg(zklock_tls)]
    let tls = config.tls.as_ref().map(Files::of).transpose().map_err(invalid)?;
    #[cfg(not(zklock_tls))]
    if config.tls.is_some() {
        return Err(invalid("the C client that is linked has no TLS"));
    }
    #[cfg(zklock_sasl)]
    let texts = match &config.sasl {
        Some(settings) => Some(sasl::keep(plain.id, settings).map_err(invalid)?),
        None => None,
    };
    #[cfg(zklock_sasl)]
    let mut params = texts.as_ref().map(|texts| sasl::params(plain.id, texts));
    #[cfg(not(zklock_sasl))]
    if config.sasl.is_some() {
        return Err(invalid("the C client that is linked has no SASL"));
    }

    #[cfg(any(zklock_tls = "own", zklock_sasl = "own"))]
    {
        #[cfg(zklock_tls)]
        let tls = tls.as_ref().map(|tls| sys::secure::zookeeper_sys_tls_t {
            ca: tls.ca.as_ptr(),
            cert: tls.cert.as_ptr(),
            key: tls.key.as_ptr(),
            password: tls.password.as_ptr(),
            verify_host: c_int::from(tls.verify_host_name),
        });
        #[cfg(not(zklock_tls))]
        let tls: Option<sys::secure::zookeeper_sys_tls_t> = None;
        #[cfg(zklock_sasl)]
        let params = params
            .as_mut()
            .map_or(std::ptr::null_mut(), |params| std::ptr::from_mut(params).cast());
        #[cfg(not(zklock_sasl))]
        let params = std::ptr::null_mut();
        // SAFETY: as `Plain::open`. The texts of TLS and SASL stay during the call, which copies them; what SASL
        // asks later is kept by the handle's number until `closed`.
        Ok(unsafe {
            sys::secure::zookeeper_sys_init_secure(
                plain.hosts,
                Some(watcher::watcher),
                plain.timeout,
                plain.client_id,
                watcher::context(plain.id),
                0,
                Some(super::log::forward),
                tls.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
                params,
            )
        })
    }
    #[cfg(not(any(zklock_tls = "own", zklock_sasl = "own")))]
    {
        #[cfg(zklock_tls)]
        if let Some(tls) = &tls {
            if config.sasl.is_some() {
                return Err(invalid(
                    "this C client can't have both TLS and SASL on one connection",
                ));
            }
            // SAFETY: the caller keeps the promise of `Plain::open`.
            return unsafe { library::open_tls(plain, tls) };
        }
        #[cfg(zklock_sasl)]
        if let Some(params) = &mut params {
            // SAFETY: as `Plain::open`. The texts stay during the call, which copies them; what SASL asks
            // later is kept by the handle's number until `closed`.
            return Ok(unsafe {
                sys::secure::zookeeper_init_sasl(
                    plain.hosts,
                    Some(watcher::watcher),
                    plain.timeout,
                    plain.client_id,
                    watcher::context(plain.id),
                    0,
                    Some(super::log::forward),
                    params,
                )
            });
        }
        Err(invalid("neither TLS nor SASL"))
    }
}

/// The files of TLS, and the password of one.
#[cfg(zklock_tls)]
struct Files {
    ca: CString,
    /// Empty where the client has no certificate, as the key.
    cert: CString,
    key: CString,
    /// Empty where there is none: the C client must not ask for it.
    password: CString,
    #[cfg_attr(not(zklock_tls = "own"), allow(dead_code))]
    verify_host_name: bool,
}

#[cfg(zklock_tls)]
impl Files {
    fn of(tls: &crate::tls::Tls) -> Result<Files, String> {
        use std::os::unix::ffi::OsStrExt as _;
        use std::path::PathBuf;

        use crate::tls::Certificate;
        let nul = |_| "a NUL in a setting of TLS".to_owned();
        let file = |path: &std::path::Path| CString::new(path.as_os_str().as_bytes()).map_err(nul);
        let own = |which: fn(&Certificate) -> &PathBuf| {
            tls.own.as_ref().map_or(Ok(CString::default()), |own| file(which(own)))
        };
        let password = tls.key_password.as_ref().map(|password| password.read()).transpose()?;
        Ok(Files {
            ca: file(&tls.ca)?,
            cert: own(|own| &own.cert)?,
            key: own(|own| &own.key)?,
            password: CString::new(password.unwrap_or_default()).map_err(nul)?,
            verify_host_name: tls.verify_host_name,
        })
    }
}

/// TLS as the C client of an installed library has it.
#[cfg(all(zklock_tls = "library", not(zklock_sasl = "own")))]
mod library {
    use std::ffi::CString;
    use std::io;

    use parking_lot::Mutex;

    use super::{Files, Plain, invalid, sys, watcher};
    use crate::sync::per_process;

    per_process! {
        /// It takes the list of files apart with `strtok`, which is for one thread at a time.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    }

    /// # Safety
    /// As [`Plain::open`].
    pub(super) unsafe fn open_tls(plain: &Plain, tls: &Files) -> io::Result<*mut sys::zhandle_t> {
        let none: &[u8] = b"none";
        let password = tls.password.as_bytes();
        // Without one the C client asks for it on the terminal.
        let password = if password.is_empty() { none } else { password };
        let parts = [tls.ca.as_bytes(), tls.cert.as_bytes(), tls.key.as_bytes(), password];
        if parts.iter().any(|part| part.is_empty() || part.contains(&b',')) {
            return Err(invalid(
                "this C client takes no comma in the names of the files for TLS, or in the key's password",
            ));
        }
        let list =
            CString::new(parts.join(&b',')).map_err(|_| invalid("a NUL in a setting of TLS"))?;
        let _one = ONE_AT_A_TIME.lock();
        // SAFETY: the caller keeps the promise; the list stays during the call, which copies it.
        let zh = unsafe {
            sys::secure::zookeeper_init_ssl(
                plain.hosts,
                list.as_ptr(),
                Some(watcher::watcher),
                plain.timeout,
                plain.client_id,
                watcher::context(plain.id),
                0,
            )
        };
        if !zh.is_null() {
            // SAFETY: a live handle that nobody else knows yet.
            unsafe { sys::zoo_set_log_callback(zh, Some(crate::raw::log::forward)) };
        }
        Ok(zh)
    }
}
