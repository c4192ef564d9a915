//! The members of a group.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::capi::boundary::{
    Failure, Object, Unfreed, c_string, free, given, may_block, number, output, status, value,
};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::options;
use crate::capi::zkl::recipe::{Recipe, zkl_recipe_options};
use crate::capi::zkl::replies::code;
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{timeout, wait};
use crate::capi::zkl::watch::{self, zkl_watch};
use crate::client::Client;
use crate::process::inherited;
use crate::recipes::{Group, Member, Membership};
use crate::znode::Acl;

/// A group; see zkl_group_new.
#[allow(non_camel_case_types)]
pub struct zkl_group {
    recipe: Recipe,
}

/// The program's membership in a group; see zkl_group_join.
#[allow(non_camel_case_types)]
pub struct zkl_membership {
    membership: Mutex<Membership>,
    id: CString,
    path: CString,
    shared: Arc<Shared>,
    unfreed: Unfreed,
}

/// A member of a group. The list owns its strings and data. Any client may have written them.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct zkl_member {
    /// The name of its znode. It stays the same during the membership and is never reused.
    pub id: *const c_char,
    /// The data that it joined with, without a terminating NUL.
    pub data: *const c_void,
    /// The length of `data` in bytes.
    pub len: usize,
    /// The session of its znode.
    pub session_id: i64,
    /// The transaction that created its znode. Later members have a larger one.
    pub joined: i64,
}

/// A list of members; see zkl_group_members.
#[allow(non_camel_case_types)]
pub struct zkl_members {
    list: Vec<zkl_member>,
    /// The memory that `list` points into.
    _kept: Vec<(CString, Vec<u8>)>,
}

// SAFETY: the pointers in `list` lead only into `_kept`, which is never changed; nothing here is tied to a thread.
unsafe impl Send for zkl_members {}
// SAFETY: as above.
unsafe impl Sync for zkl_members {}

/// The members. With ZOK `members` is the program's: free it with zkl_members_free. Otherwise it is NULL. Must not
/// throw.
#[allow(non_camel_case_types)]
pub type zkl_members_fn =
    Option<unsafe extern "C" fn(rc: c_int, members: *mut zkl_members, userdata: *mut c_void)>;

impl Object for zkl_group {
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
    }
}

impl Object for zkl_membership {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_members {
    fn boxed(members: Vec<Member>) -> Box<zkl_members> {
        let mut kept = Vec::with_capacity(members.len());
        let list = members.into_iter().map(|member| {
            let (id, data) = (c_string(&member.id), member.data);
            // Both stay where they are when they are moved.
            let (session_id, joined) = (member.session, member.joined);
            let (id_at, data_at, len) = (id.as_ptr(), data.as_ptr().cast(), data.len());
            kept.push((id, data));
            zkl_member { id: id_at, data: data_at, len, session_id, joined }
        });
        Box::new(zkl_members { list: list.collect(), _kept: kept })
    }
}

fn group_at(client: &Client, path: &str, acl: Vec<Acl>) -> Group {
    client.group(path).acl(acl)
}

/// Makes a group at a path: all clients can see its members as long as they live. Sends nothing. Members are ephemeral
/// znodes below the path, as in kazoo's `Party`.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*group` is the program's: free it with zkl_group_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_group_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_recipe_options,
    group: Option<&mut MaybeUninit<*mut zkl_group>>,
) -> c_int {
    const NAME: &str = "zkl_group_new";
    status(|| {
        let place = output(NAME, "group", group)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        place.write(Box::into_raw(Box::new(zkl_group { recipe })));
        Ok(())
    })
}

/// Frees the group. Members and watches stay.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_group_free(group: Option<Box<zkl_group>>) {
    free(group);
}

/// Joins the group, with `len` bytes of data (NULL only with 0) that all clients can read. Waits up to `timeout_ms`, or
/// ZKL_FOREVER. After its session has ended, the member joins again in the next session, with the same id. It does the
/// same if another client deletes its znode. On an adopted handle it ends with the session.
///
/// On connection loss it waits for the next connection and looks up there whether it has joined. After an error no
/// member is left. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*membership` is the program's: end
/// it with zkl_membership_leave or zkl_membership_free. It keeps the client's session, as a guard does.
///
/// ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, another negative timeout, or the
/// data exceeds a request. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed;
/// ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_group_join(
    group: Option<&zkl_group>,
    data: *const c_void,
    len: usize,
    timeout_ms: c_int,
    membership: Option<&mut MaybeUninit<*mut zkl_membership>>,
) -> c_int {
    const NAME: &str = "zkl_group_join";
    status(|| {
        let recipe = &given(NAME, "group", group)?.recipe;
        let place = output(NAME, "membership", membership)?;
        // SAFETY: the header asks for `len` bytes.
        let data = unsafe { options::bytes(NAME, data, len) }?;
        let join = |client: &Client, path: &str, acl| group_at(client, path, acl).join(data);
        let (membership, shared) = recipe.call(NAME, timeout_ms, join)?;
        let (id, path) = (c_string(membership.id()), c_string(membership.path()));
        let (membership, unfreed) = (Mutex::new(membership), Unfreed::new());
        let made = zkl_membership { membership, id, path, shared, unfreed };
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// The member's id in the group: see `zkl_member`.
///
/// Any thread. The membership owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_membership_id(membership: Option<&zkl_membership>) -> *const c_char {
    membership.map_or(std::ptr::null(), |membership| membership.id.as_ptr())
}

/// The path of the member's znode.
///
/// Any thread. The membership owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_membership_path(membership: Option<&zkl_membership>) -> *const c_char {
    membership.map_or(std::ptr::null(), |membership| membership.path.as_ptr())
}

/// 1 while it is a member, by the local clock; otherwise 0. After a loss of the session it is 0 until it has joined
/// again. Costs no request. It says less than a guard: a leader that others have replaced without its knowledge vouches
/// for a session that they have ended, for a few seconds.
///
/// Any thread. ZBADARGUMENTS: NULL. ZINVALIDSTATE: in the child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_membership_is_member(membership: Option<&zkl_membership>) -> c_int {
    const NAME: &str = "zkl_membership_is_member";
    let is_member = || {
        let membership = given(NAME, "membership", membership)?;
        Ok(membership.membership.lock().is_member().into())
    };
    number(codes::ZKL_PANIC, is_member, |code| code)
}

/// Leaves the group, and waits up to `timeout_ms`, or ZKL_FOREVER, until its znode is gone. Frees the membership,
/// whatever it returns. On connection loss the deletion is repeated until the znode or the session is gone.
/// `pthread_cancel` waits until it has ended. In the child of a fork it only frees.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK: its znode is gone. ZOPERATIONTIMEOUT: no server confirmed it in time. ZNOAUTH: the session may not delete it, and
/// it stays until the session ends. ZCONNECTIONLOSS: the client was detached or closed meanwhile, and no server has
/// confirmed the end of its session. ZKL_WOULD_DEADLOCK: inside a callback of the C client. ZBADARGUMENTS: NULL, or
/// another negative timeout. After an error it leaves in the background. ZINVALIDSTATE: in the child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_membership_leave(
    membership: Option<Box<zkl_membership>>,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_membership_leave";
    status(|| {
        let null = || Failure::bad_argument(NAME, "membership is NULL");
        let membership = membership.ok_or_else(null)?;
        if membership.is_inherited() {
            free(Some(membership));
            return Err(inherited(NAME, "").into());
        }
        let within = timeout(NAME, timeout_ms)?;
        may_block(NAME)?;
        let zkl_membership { membership, shared, .. } = *membership;
        let left = wait(membership.into_inner().leave(), within);
        drop(shared);
        left
    })
}

/// Leaves the group in the background, and frees the membership. Waits only if this was the last object of its client:
/// see zkl_client_free. In the child of a fork it only frees.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_membership_free(membership: Option<Box<zkl_membership>>) {
    free(membership);
}

/// The present members in the order in which they joined; empty if no member has joined yet. Waits up to `timeout_ms`,
/// or ZKL_FOREVER. It costs a listing, and a read for each member.
///
/// On connection loss it asks again. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*members` is the program's: free it
/// with zkl_members_free.
///
/// ZOK. ZOPERATIONTIMEOUT: no server answers in time. Otherwise as zkl_group_join.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_group_members(
    group: Option<&zkl_group>,
    timeout_ms: c_int,
    members: Option<&mut MaybeUninit<*mut zkl_members>>,
) -> c_int {
    const NAME: &str = "zkl_group_members";
    status(|| {
        let recipe = &given(NAME, "group", group)?.recipe;
        let place = output(NAME, "members", members)?;
        let list = |client: &Client, path: &str, acl| group_at(client, path, acl).members();
        let (members, _) = recipe.call(NAME, timeout_ms, list)?;
        place.write(Box::into_raw(zkl_members::boxed(members)));
        Ok(())
    })
}

/// Watches the members. zklock calls `changed` with them, now and at each change: a list, which the program frees.
/// Members that come and go between two calls are left out. A member that joined again in another session is a change
/// only if its place has changed. The next call comes after the previous one has returned. It costs one watch, one
/// listing for each change, and one read for each new member; if one came and went between two looks, one read for each
/// member.
///
/// Thread, connection loss, end, `finalizer`, `*watch`, codes and fork: as zkl_election_observe.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_group_watch(
    group: Option<&zkl_group>,
    changed: zkl_members_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    watch: Option<&mut MaybeUninit<*mut zkl_watch>>,
) -> c_int {
    const NAME: &str = "zkl_group_watch";
    status(|| {
        let recipe = &given(NAME, "group", group)?.recipe;
        let place = output(NAME, "watch", watch)?;
        let changed = changed.ok_or_else(|| Failure::bad_argument(NAME, "changed is NULL"))?;
        let shared = recipe.shared();
        let members = recipe.on(NAME, &shared, group_at)?.watch_members();
        let userdata = Userdata::new(userdata, finalizer);
        watch::begin(NAME, &shared, userdata, members, place, move |members, userdata| {
            let (rc, members) = code(members);
            let members = members.map(|members| Box::into_raw(zkl_members::boxed(members)));
            // SAFETY: the program gave the function for these arguments, to be called on this thread until the watch
            // is freed.
            unsafe { changed(rc, members.unwrap_or(std::ptr::null_mut()), userdata) };
        })
    })
}

/// The number of entries; 0 for NULL.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_members_count(members: Option<&zkl_members>) -> usize {
    members.map_or(0, |members| members.list.len())
}

/// The entry at `index`, from 0. NULL beyond the end and for NULL. The list owns it.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_members_get(
    members: Option<&zkl_members>,
    index: usize,
) -> Option<&zkl_member> {
    members?.list.get(index)
}

/// Frees the list, with its entries, their strings and data.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_members_free(members: Option<Box<zkl_members>>) {
    value((), || drop(members));
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_group>();
    usable_by_several_threads::<zkl_membership>();
};
