//! Arguments as a program may pass them, right and wrong, and what each is worth.

use std::ffi::{CString, c_char, c_int};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use zookeeper_sys as sys;

use crate::capi::zkl::options::{zkl_client_options, zkl_lock_options};
use crate::error::Code;
use crate::znode::Permissions;

/// What a function refuses an argument with.
pub(super) type Verdict = Result<(), Code>;

pub(super) fn refused_unless(good: bool) -> Verdict {
    if good { Ok(()) } else { Err(Code::BAD_ARGUMENTS) }
}

/// A number, often one at an edge.
pub(super) fn int() -> impl Strategy<Value = c_int> {
    prop_oneof![any::<c_int>(), -3..4, Just(c_int::MIN), Just(c_int::MAX)]
}

/// NULL, or bytes up to a NUL.
#[derive(Clone, Debug)]
pub(super) struct Text(Option<CString>);

impl Text {
    pub(super) fn pointer(&self) -> *const c_char {
        self.0.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
    }

    /// What it says, unless it is NULL or no UTF-8.
    pub(super) fn said(&self) -> Option<&str> {
        self.0.as_ref()?.to_str().ok()
    }

    fn verdict(&self) -> Verdict {
        refused_unless(self.said().is_some())
    }
}

/// A text, mostly one that `good` makes.
pub(super) fn text(good: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = Text> {
    let bytes = prop_oneof![
        4 => good.prop_map(String::into_bytes),
        1 => ".{0,40}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ];
    let bytes = bytes.prop_map(|mut bytes| {
        bytes.retain(|byte| *byte != 0);
        CString::new(bytes).unwrap()
    });
    option::weighted(0.9, bytes).prop_map(Text)
}

/// An options struct's place in memory, and what it says of its size.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    null: bool,
    odd: bool,
    size: Option<usize>,
    /// Something beyond what is known of the struct: how far, and what.
    beyond: Option<(usize, u8)>,
}

/// Nothing of that size is looked at.
const ROOM: usize = 4096;

pub(super) fn frame() -> impl Strategy<Value = Frame> {
    let size = prop_oneof![any::<usize>(), 0..2 * ROOM];
    let beyond = (0..ROOM, any::<u8>());
    let weighted = prop::bool::weighted;
    (weighted(0.1), weighted(0.05), option::weighted(0.3, size), option::weighted(0.2, beyond))
        .prop_map(|(null, odd, size, beyond)| Frame { null, odd, size, beyond })
}

impl Frame {
    fn size<T>(&self) -> usize {
        // What earlier versions knew is less, and not refused: that is tested by itself.
        let known = size_of::<T>();
        let of_earlier = known / 2..known;
        self.size.filter(|size| !of_earlier.contains(size)).unwrap_or(known)
    }

    /// Whether the options are refused for their frame; `None` when they are not looked at.
    fn verdict<T>(&self) -> Option<Verdict> {
        if self.null {
            return None;
        }
        let (size, known) = (self.size::<T>(), size_of::<T>());
        let says_more = self.beyond.is_some_and(|(at, byte)| byte != 0 && known + at < size);
        Some(refused_unless(!self.odd && size >= known && size <= ROOM && !says_more))
    }

    /// Lays the options out and calls `with` their address.
    fn lay_out<T, R>(&self, options: T, with: impl FnOnce(*const T) -> R) -> R {
        if self.null {
            return with(std::ptr::null());
        }
        let mut memory = vec![0_u64; ROOM / 4];
        let start = memory.as_mut_ptr().cast::<u8>().wrapping_add(self.odd.into());
        // SAFETY: there is room for more than the options, and any address will do.
        unsafe { start.cast::<T>().write_unaligned(options) };
        if let Some((at, byte)) = self.beyond {
            let place = start.wrapping_add(size_of::<T>() + at);
            // SAFETY: the memory is twice as large as ROOM, which neither summand is above.
            unsafe { place.write(byte) };
        }
        with(start.cast())
    }
}

#[derive(Clone, Debug)]
struct AclEntry {
    permissions: c_int,
    scheme: Text,
    id: Text,
}

/// An access control list; `count` is negative where it lies about itself.
#[derive(Clone, Debug)]
struct AclList {
    count: Option<c_int>,
    no_data: bool,
    entries: Vec<AclEntry>,
}

fn acl() -> impl Strategy<Value = AclList> {
    let permissions = prop_oneof![4 => Just(0x1f), 2 => 1..=0x1f, 1 => int()];
    let entry = (permissions, text(Just("world".into())), text(Just("anyone".into())));
    let entry = entry.prop_map(|(permissions, scheme, id)| AclEntry { permissions, scheme, id });
    let count = option::weighted(0.1, c_int::MIN..=0);
    (count, prop::bool::weighted(0.05), vec(entry, 0..4))
        .prop_map(|(count, no_data, entries)| AclList { count, no_data, entries })
}

impl AclList {
    fn verdict(&self) -> Verdict {
        if self.no_data || self.count.is_some() || self.entries.is_empty() {
            return Err(Code::INVALID_ACL);
        }
        self.entries.iter().try_for_each(|entry| {
            let permissions = Permissions::from_bits(entry.permissions);
            if permissions.is_none_or(|permissions| permissions.is_empty()) {
                return Err(Code::INVALID_ACL);
            }
            entry.scheme.verdict().and(entry.id.verdict())
        })
    }

    fn in_c(&self) -> (sys::ACL_vector, Vec<sys::ACL>) {
        let in_c = |entry: &AclEntry| sys::ACL {
            perms: entry.permissions,
            id: sys::Id {
                scheme: entry.scheme.pointer().cast_mut(),
                id: entry.id.pointer().cast_mut(),
            },
        };
        let mut entries: Vec<sys::ACL> = self.entries.iter().map(in_c).collect();
        let count = self.count.unwrap_or(c_int::try_from(entries.len()).unwrap());
        let data = if self.no_data { std::ptr::null_mut() } else { entries.as_mut_ptr() };
        (sys::ACL_vector { count, data }, entries)
    }
}

/// A `zkl_lock_options *`.
#[derive(Clone, Debug)]
pub(super) struct LockOptions {
    frame: Frame,
    strategy: c_int,
    label: Text,
    acl: Option<AclList>,
    /// The sharing, the permits and the limit.
    shared: [c_int; 3],
    interop: c_int,
}

pub(super) fn lock_options() -> impl Strategy<Value = LockOptions> {
    let strategy = prop_oneof![4 => 0..3, 1 => int()];
    let sharing = prop_oneof![4 => Just(0), 4 => 1..4, 1 => int()];
    let number = || prop_oneof![4 => Just(0), 2 => 1..4, 1 => int()];
    let shared = [sharing.boxed(), number().boxed(), number().boxed()];
    let interop = prop_oneof![8 => Just(0), 4 => Just(1), 1 => int()];
    let label = text(Just("label".into()));
    (frame(), strategy, label, option::of(acl()), shared, interop).prop_map(
        |(frame, strategy, label, acl, shared, interop)| LockOptions {
            frame,
            strategy,
            label,
            acl,
            shared,
            interop,
        },
    )
}

impl LockOptions {
    /// Whether they say, or leave it at, a lock that can be on the root.
    pub(super) fn allow_the_root(&self) -> bool {
        self.frame.null || self.strategy == 0 && self.shared[0] != 3
    }

    pub(super) fn verdict(&self) -> Verdict {
        let Some(frame) = self.frame.verdict::<zkl_lock_options>() else { return Ok(()) };
        let label = refused_unless(self.label.0.is_none() || self.label.said().is_some());
        let acl = || self.acl.as_ref().map_or(Ok(()), AclList::verdict);
        let shared = match self.shared {
            [0, 0, 0] => true,
            [1 | 2, 0, 0] => self.strategy == 0,
            [3, permits, limit] => self.strategy == 0 && permits >= 0 && limit > 0,
            _ => false,
        };
        let is_plain = self.strategy == 0 && self.shared[0] == 0;
        let interop = || refused_unless(self.interop == 0 || self.interop == 1 && is_plain);
        let shared = || refused_unless(shared);
        let strategy = refused_unless((0..3).contains(&self.strategy));
        frame
            .and(strategy)
            .and(label)
            .and_then(|()| acl())
            .and_then(|()| shared())
            .and_then(|()| interop())
    }

    pub(super) fn lay_out<R>(&self, with: impl FnOnce(*const zkl_lock_options) -> R) -> R {
        let acl = self.acl.as_ref().map(AclList::in_c);
        let options = zkl_lock_options {
            size: self.frame.size::<zkl_lock_options>(),
            strategy: self.strategy,
            label: self.label.pointer(),
            acl: acl.as_ref().map_or(std::ptr::null(), |(vector, _)| vector),
            sharing: self.shared[0],
            permits: self.shared[1],
            limit: self.shared[2],
            interop: self.interop,
        };
        self.frame.lay_out(options, with)
    }
}

/// Those of a program that asks for nothing.
pub(super) fn no_options() -> zkl_client_options {
    zkl_client_options {
        size: size_of::<zkl_client_options>(),
        session_timeout_ms: 0,
        connect_timeout_ms: 0,
        operation_timeout_ms: 0,
        auth_scheme: std::ptr::null(),
        auth_secret: std::ptr::null(),
        auth_secret_len: 0,
        tick_time_ms: 0,
        max_request: 0,
        tls_ca: std::ptr::null(),
        tls_cert: std::ptr::null(),
        tls_key: std::ptr::null(),
        tls_key_password_file: std::ptr::null(),
        tls_any_host_name: 0,
        sasl_user: std::ptr::null(),
        sasl_password_file: std::ptr::null(),
        sasl_mechanism: std::ptr::null(),
        unannounced_releases: 0,
    }
}

/// A `zkl_client_options *`; no time in it is long.
#[derive(Clone, Debug)]
pub(super) struct ClientOptions {
    frame: Frame,
    millis: [c_int; 3],
    scheme: Text,
    secret: Option<Vec<u8>>,
    secret_len: Option<usize>,
}

pub(super) fn client_options() -> impl Strategy<Value = ClientOptions> {
    let millis = || prop_oneof![8 => 1..20, 1 => c_int::MIN..0];
    // Only where there are no bytes may there be any number of them.
    let secret = option::of(vec(any::<u8>(), 0..20));
    let len = option::of(prop_oneof![any::<usize>(), Just(usize::MAX)]);
    (frame(), [millis(), millis(), millis()], text(Just("digest".into())), secret, len).prop_map(
        |(frame, millis, scheme, secret, len)| {
            let secret_len = len.filter(|_| secret.is_none());
            ClientOptions { frame, millis, scheme, secret, secret_len }
        },
    )
}

impl ClientOptions {
    /// Whether a client is sure to be refused.
    pub(super) fn is_refused(&self) -> bool {
        match self.frame.verdict::<zkl_client_options>() {
            Some(Ok(())) => self.millis.iter().any(|millis| *millis < 0),
            refused => refused.is_some(),
        }
    }

    /// Whether the times are the defaults.
    pub(super) fn are_none(&self) -> bool {
        self.frame.null
    }

    pub(super) fn lay_out<R>(&self, with: impl FnOnce(*const zkl_client_options) -> R) -> R {
        let [session_timeout_ms, connect_timeout_ms, operation_timeout_ms] = self.millis;
        let secret = self.secret.as_ref();
        let options = zkl_client_options {
            size: self.frame.size::<zkl_client_options>(),
            session_timeout_ms,
            connect_timeout_ms,
            operation_timeout_ms,
            auth_scheme: self.scheme.pointer(),
            auth_secret: secret.map_or(std::ptr::null(), |secret| secret.as_ptr().cast()),
            auth_secret_len: self.secret_len.unwrap_or(secret.map_or(0, Vec::len)),
            ..no_options()
        };
        self.frame.lay_out(options, with)
    }
}
