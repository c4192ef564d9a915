//! The common part of the recipes beside locks: a path below a client, options, and how a call waits.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use zookeeper_sys as sys;

use crate::capi::acl;
use crate::capi::boundary::{Failure, Unfreed, given, text};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::options::{self, Options};
use crate::capi::zkl::present::Present;
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{timeout, wait};
use crate::client::Client;
use crate::path;
use crate::runtime::Pending;
use crate::znode::Acl;

/// Options of a counter, queue, group, latch or barrier. Start from the defaults, then set what differs:
/// `zkl_recipe_options options = ZKL_RECIPE_OPTIONS_INIT;`. Names that begin with `zl-` are reserved: a recipe on such
/// a path is refused with ZBADARGUMENTS.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct zkl_recipe_options {
    /// `sizeof(zkl_recipe_options)`.
    pub size: usize,
    /// The ACL of the znodes that it creates, as the C client takes it, such as `&ZOO_CREATOR_ALL_ACL`. NULL: all
    /// clients may do everything. Copied.
    pub acl: *const sys::ACL_vector,
}

// SAFETY: `repr(C)`, `size` first, integers and pointers only.
unsafe impl Options for zkl_recipe_options {
    const FIRST_SIZE: usize = size_of::<zkl_recipe_options>();
}

/// A recipe at a path, which goes where its client goes.
pub(super) struct Recipe {
    sessions: Arc<Present>,
    path: String,
    acl: Vec<Acl>,
    /// Of the object that it is all of.
    pub(super) unfreed: Unfreed,
}

impl Recipe {
    /// # Safety
    /// As the header asks: `path` is null or a string, `options` null or a filled struct whose ACL is null or one of
    /// the C client's.
    pub(super) unsafe fn new(
        function: &'static str,
        client: Option<&zkl_client>,
        path: *const c_char,
        options: *const zkl_recipe_options,
    ) -> Result<Recipe, Failure> {
        let sessions = Arc::clone(&given(function, "client", client)?.present);
        sessions.shared().client(function)?;
        // SAFETY: the caller's promise.
        let path = unsafe { text(function, "path", path) }?.to_owned();
        path::validate(&path).map_err(|why| Failure::bad_path(function, &path, why))?;
        path::check_name(&path)
            .map_err(|why| Failure::bad_argument(function, &format!("{path}: {why}")))?;
        // SAFETY: the caller's promise.
        let options = unsafe { options::read(function, options) }?;
        // SAFETY: null, or the caller promises an ACL vector.
        let vector = options.and_then(|options| unsafe { options.acl.as_ref() });
        let acl = match vector {
            // SAFETY: as above, with all its entries.
            Some(vector) => unsafe { acl::copy(function, vector) }?,
            None => Acl::open(),
        };
        Ok(Recipe { sessions, path, acl, unfreed: Unfreed::new() })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Its client's present session.
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.sessions.shared()
    }

    /// The recipe on that session.
    pub(super) fn on<R>(
        &self,
        function: &'static str,
        shared: &Shared,
        make: impl FnOnce(&Client, &str, Vec<Acl>) -> R,
    ) -> Result<R, Failure> {
        Ok(make(shared.client(function)?, &self.path, self.acl.clone()))
    }

    /// Waits for an operation on the present session, which is given with the result.
    pub(super) fn call<T, E>(
        &self,
        function: &'static str,
        timeout_ms: c_int,
        begin: impl FnOnce(&Client, &str, Vec<Acl>) -> Pending<T, E>,
    ) -> Result<(T, Arc<Shared>), Failure>
    where
        Failure: From<E>,
    {
        let within = timeout(function, timeout_ms)?;
        let shared = self.shared();
        shared.may_wait(function)?;
        let result = wait(self.on(function, &shared, begin)?, within)?;
        Ok((result, shared))
    }
}
