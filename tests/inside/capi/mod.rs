//! Every function, with arguments of any kind that its header allows to pass: what is wrong is
//! refused, an output is written exactly on success, and nothing crashes, panics or hangs.

mod arguments;
mod locks;
mod recipes;
mod scene;

use std::ffi::CStr;

use proptest::prelude::*;

use self::arguments::{client_options, int, refused_unless, text};
use self::scene::{Handle, check, given, told};
use super::zkl::client::{
    zkl_client_adopt, zkl_client_connect, zkl_client_detach, zkl_client_free, zkl_client_state,
};
use super::zkl::errors::zkl_strerror;
use crate::error::Code;

#[test]
fn a_client_is_refused_for_hosts_and_options_that_are_wrong() {
    const UNANSWERED: &str = "127.0.0.1:1";
    // What is no address of this machine is no address at all: no name server is asked.
    let hosts = prop_oneof![Just(UNANSWERED.to_owned()), ".{0,20}@.{0,20}"];
    check((text(hosts), client_options(), any::<bool>()), |(hosts, options, has_place)| {
        let is_address = hosts.said() == Some(UNANSWERED);
        if is_address && options.are_none()
            || hosts.said().is_some_and(|text| !text.contains('@')) && !is_address
        {
            return Ok(());
        }
        let client = options.lay_out(|options| {
            given(has_place, |client| {
                // SAFETY: NULL or a string, NULL or options laid out in memory of their size.
                unsafe { zkl_client_connect(hosts.pointer(), options, client) }
            })
        });
        let code = client.err();
        prop_assert!(code.is_some());
        if !is_address || options.is_refused() || !has_place {
            prop_assert_eq!(code, Some(Code::BAD_ARGUMENTS));
        }
        Ok(())
    });
}

#[test]
fn a_handle_is_adopted_with_options_that_are_right_or_not_at_all() {
    let handle = Handle::unanswered();
    check((any::<bool>(), client_options(), any::<bool>()), |(is_null, options, has_place)| {
        let zh = if is_null { std::ptr::null_mut() } else { handle.0 };
        let client = options.lay_out(|options| {
            // SAFETY: NULL or a live handle, NULL or options laid out in memory of their size.
            given(has_place, |client| unsafe { zkl_client_adopt(zh, options, client) })
        });
        // Its times are not for an adopted handle.
        let is_good = !is_null && has_place && options.are_none();
        prop_assert_eq!(client.as_ref().map(drop).map_err(|code| *code), refused_unless(is_good));
        if let Ok(Some(client)) = client {
            prop_assert!(zkl_client_state(Some(&client)) >= 0);
            prop_assert_eq!(told(zkl_client_detach(Some(&client))), Ok(()));
            zkl_client_free(Some(client));
        }
        Ok(())
    });
}

#[test]
fn every_number_has_a_meaning_in_words() {
    check(int(), |code| {
        // SAFETY: a string that lives as long as the program.
        let meaning = unsafe { CStr::from_ptr(zkl_strerror(code)) };
        prop_assert!(meaning.to_str().is_ok_and(|meaning| !meaning.is_empty()));
        Ok(())
    });
}
