//! Callbacks with what changes, for as long as the program wants them.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_core::Stream as _;
use parking_lot::Mutex;

use crate::capi::boundary::{Failure, Object, Unfreed, free};
use crate::capi::callbacks::{Line, Userdata};
use crate::capi::zkl::shared::Shared;
use crate::error::Code;
use crate::runtime::{Latest, Updates, wake};

/// A watch with a callback, until it is freed; see zkl_election_observe and zkl_group_watch.
#[allow(non_camel_case_types)]
pub struct zkl_watch {
    is_over: Arc<Latest<bool>>,
    /// The free function takes it away, so that nothing keeps the client after it returns.
    updates: Arc<dyn Source>,
    /// Keeps the session.
    _shared: Arc<Shared>,
    unfreed: Unfreed,
}

/// Where the values come from, until it is taken away.
struct Updating<T>(Mutex<Option<Updates<T>>>);

trait Source: Send + Sync {
    fn take_away(&self);
}

impl<T: Send> Source for Updating<T> {
    fn take_away(&self) {
        let updates = self.0.lock().take();
        drop(updates);
    }
}

impl<T> Updating<T> {
    async fn next(&self) -> Option<T> {
        std::future::poll_fn(|cx| match &mut *self.0.lock() {
            Some(updates) => Pin::new(updates).poll_next(cx),
            None => Poll::Ready(None),
        })
        .await
    }
}

impl Object for zkl_watch {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl Drop for zkl_watch {
    fn drop(&mut self) {
        self.is_over.update(|is_over| !std::mem::replace(is_over, true));
        self.updates.take_away();
    }
}

/// Calls the program with each value, and at most once with a failure, which is the last.
type Call<T> = Arc<dyn Fn(Result<T, Failure>, *mut c_void) + Send + Sync>;

/// The callback, until this is dropped.
struct Called<T: 'static> {
    name: &'static str,
    line: Line,
    call: Call<T>,
    is_over: Arc<Latest<bool>>,
    has_failed: bool,
    /// Empty only at the end.
    userdata: Option<Arc<Userdata>>,
}

impl<T: Send + 'static> Called<T> {
    /// Comes when the callback has returned. So nothing is piled up by one that is slow.
    async fn call(&mut self, value: Result<T, Failure>) {
        let Some(userdata) = self.userdata.clone() else { return };
        self.has_failed = value.is_err();
        let (send, returned) = oneshot::async_channel();
        let (call, is_over) = (Arc::clone(&self.call), Arc::clone(&self.is_over));
        self.line.run(move || {
            if !is_over.get() {
                call(value, userdata.pointer());
            }
            drop(userdata);
            wake::send(send, ());
        });
        // Where it is dropped, the callback has ended, too.
        let _ = returned.await;
    }
}

impl<T: 'static> Drop for Called<T> {
    fn drop(&mut self) {
        let userdata = self.userdata.take();
        let (call, is_over, has_failed) =
            (Arc::clone(&self.call), Arc::clone(&self.is_over), self.has_failed);
        let message = format!("{}: the client is closed", self.name);
        // Behind all calls.
        self.line.run(move || {
            let Some(userdata) = userdata.and_then(Arc::into_inner) else { return };
            if !has_failed && !is_over.get() {
                let closed = Failure::new(Code::INVALID_STATE.as_raw(), message);
                call(Err(closed), userdata.pointer());
            }
            userdata.finish();
        });
    }
}

/// Begins to call the program with what changes.
pub(super) fn begin<T, E>(
    name: &'static str,
    shared: &Arc<Shared>,
    userdata: Userdata,
    updates: Updates<Result<T, E>>,
    place: &mut MaybeUninit<*mut zkl_watch>,
    call: impl Fn(Result<T, Failure>, *mut c_void) + Send + Sync + 'static,
) -> Result<(), Failure>
where
    T: Send + 'static,
    E: Send + 'static,
    Failure: From<E>,
{
    let is_over = Arc::new(Latest::new(false));
    let mut called = Called {
        name,
        line: shared.callbacks.line(name)?,
        call: Arc::new(call),
        is_over: Arc::clone(&is_over),
        has_failed: false,
        userdata: Some(Arc::new(userdata)),
    };
    let updates = Arc::new(Updating(Mutex::new(Some(updates))));
    let watch = zkl_watch {
        is_over: Arc::clone(&is_over),
        updates: Arc::clone(&updates) as _,
        _shared: Arc::clone(shared),
        unfreed: Unfreed::new(),
    };
    place.write(Box::into_raw(Box::new(watch)));
    shared.spawn(async move {
        let freed = is_over.wait_for(|is_over| is_over.then_some(()));
        let calling = async {
            while let Some(value) = updates.next().await {
                called.call(value.map_err(Failure::from)).await;
            }
        };
        futures_lite::future::or(freed, calling).await;
    });
    Ok(())
}

/// Ends the calls. None is started any more, but one that has started may still run. Then the finalizer of `userdata`
/// runs. Does not wait for it.
///
/// Any thread, callbacks included (its own among them). NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_watch_free(watch: Option<Box<zkl_watch>>) {
    free(watch);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_watch>();
};
