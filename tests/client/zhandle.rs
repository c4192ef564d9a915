//! The C client's own handle, in the hands of a program.

#![allow(unsafe_code, reason = "it calls the C client")]

use std::ffi::{c_int, c_void};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use test_support::{TIMEOUT, alone, connect, expire, session_id, shared, wait_for_another_session};
use zklock::zookeeper_sys as sys;
use zklock::{Client, Code};

/// The session that the C client has on its handle.
fn session_of_the_handle(client: &Client) -> Option<i64> {
    client.with_zhandle(|zh| {
        // SAFETY: the handle is open.
        let id = unsafe { sys::zoo_client_id(zh) };
        // SAFETY: it leads into the open handle, which is connected.
        unsafe { (*id).client_id }
    })
}

unsafe extern "C" fn answered(rc: c_int, _: *const sys::Stat, data: *const c_void) {
    // SAFETY: the box that was given with the request, whose one answer this is.
    let answer = unsafe { Box::from_raw(data.cast_mut().cast::<Sender<c_int>>()) };
    answer.send(rc).unwrap();
}

#[test]
fn requests_of_a_program_go_through_the_handle_of_its_client() {
    let (client, path) = alone();
    let (send, answer) = channel::<c_int>();
    let path = std::ffi::CString::new(path).unwrap();
    let context = Box::into_raw(Box::new(send));
    let rc = client.with_zhandle(|zh| {
        // SAFETY: the handle is open; the path is copied; the context lives until the answer.
        unsafe { sys::zoo_aexists(zh, path.as_ptr(), 0, Some(answered), context.cast()) }
    });
    assert_eq!(rc, Some(0));
    assert_eq!(answer.recv_timeout(TIMEOUT), Ok(0));
}

#[test]
fn each_session_has_a_handle_of_its_own_and_a_closed_client_none() {
    let client = connect(shared());
    let session = session_id(&client);
    assert_eq!(session_of_the_handle(&client), Some(session));
    expire(shared(), &client);
    wait_for_another_session(&client, session);
    assert_eq!(session_of_the_handle(&client), Some(session_id(&client)));
    client.close().wait().unwrap();
    assert_eq!(session_of_the_handle(&client), None);
}

#[test]
fn whoever_closes_the_handle_waits_for_who_works_with_it() {
    let client = connect(shared());
    let (inside, outside) = (channel(), channel::<()>());
    let worker = client.clone();
    let working = std::thread::spawn(move || {
        worker.with_zhandle(|zh| {
            inside.0.send(()).unwrap();
            outside.1.recv().unwrap();
            // SAFETY: the handle is open.
            unsafe { sys::zoo_recv_timeout(zh) }
        })
    });
    inside.1.recv().unwrap();
    let error = client.close().within(Duration::from_millis(200)).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
    outside.0.send(()).unwrap();
    assert!(working.join().unwrap().is_some_and(|millis| millis > 0));
    client.close().wait().unwrap();
}
